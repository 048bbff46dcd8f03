#pragma once

#include "byte_view.h"

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace hip_standin {

struct KernelArgument {
    std::string name;
    std::string kind; // "by_value", "global_buffer", …
    uint32_t offset = 0;
    uint32_t size = 0;
};

struct Kernel {
    std::string name;
    std::vector<KernelArgument> arguments; // those of the source, without the compiler's hidden ones
    uint32_t kernarg_bytes = 0;
    uint32_t static_shared_bytes = 0;
    uint32_t private_bytes = 0;
    uint32_t vector_registers = 0;
    uint32_t max_block_size = 0;
};

// The kernels of one AMDGPU ELF file, by name.
using CodeObject = std::unordered_map<std::string, std::shared_ptr<const Kernel>>;

// The size of an ELF image or an offload bundle of which only the start is known, from its own headers.
size_t image_size(const void *image);

// Reads the NT_AMDGPU_METADATA note. Throws std::runtime_error when the bytes are no AMDGPU code object.
CodeObject parse_code_object(ByteView elf);

// The kernels for a device of this gcnArchName in a code object, an offload bundle (`clang -x hip`'s fat
// binary) or a compressed one. An empty pointer: there are none for this device. Throws std::runtime_error
// for damaged images.
std::shared_ptr<const CodeObject> load_for_arch(ByteView image, const std::string &arch);

// Whether code for a target as in "gfx90a:xnack+" runs on a device. A feature that either side leaves out
// fits both.
bool target_fits(const std::string &target, const std::string &arch);

} // namespace hip_standin
