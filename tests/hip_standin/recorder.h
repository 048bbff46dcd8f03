#pragma once

#include "byte_view.h"
#include "code_object.h"

#include <array>
#include <cstdint>
#include <string>

namespace hip_standin {

struct Launch {
    std::array<uint32_t, 3> grid{};
    std::array<uint32_t, 3> block{};
    uint32_t dynamic_shared_bytes = 0;
    uint64_t stream = 0;
    int device = 0;
    std::string arch;
};

// Where a launch's arguments are: one pointer for each (kernel<<<>>>), or all in the kernel's own layout
// (hipModuleLaunchKernel's "extra", whose code need not say what is in it).
struct LaunchArguments {
    void *const *pointers = nullptr;
    ByteView buffer;
};

// Counts the launch, and keeps it and appends it to the record file unless recording is off.
void record_launch(const Launch &launch, const Kernel &kernel, const LaunchArguments &arguments);

} // namespace hip_standin
