#pragma once

#include "code_object.h"

#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace hip_standin {

// Device code as it was registered or loaded: an image, and what was found in it for each kind of device.
struct Module;
using ModuleRef = std::shared_ptr<Module>;

// The answer to a search for a kernel.
enum class Lookup {
    found,
    unknown_function, // no such host function or kernel name
    no_code_for_arch, // the image has none for this device
    damaged_image     // a message has been printed
};

struct KernelLookup {
    Lookup result = Lookup::unknown_function;
    std::shared_ptr<const Kernel> kernel;
};

// The image must stay where it is until the module is gone: as HIP's, it is read at the first launch.
ModuleRef register_image(const void *image);
ModuleRef load_image(std::vector<uint8_t> owned_image);

// What clang's constructors do. Several libraries may register one host function, when they hold the same
// template instance and the dynamic linker chose one of them; then the first to register serves it.
void add_function(const ModuleRef &module, const void *host_function, const std::string &name);
void remove_module(const ModuleRef &module);

KernelLookup find_by_host_function(const void *host_function, const std::string &arch);
KernelLookup find_by_name(const ModuleRef &module, const std::string &name, const std::string &arch);

} // namespace hip_standin
