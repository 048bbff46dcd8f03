// SPDX-License-Identifier: MIT
#include "loader.h"

#include "failure.h"
#include "shared_state.h"
#include "stderr_log.h"

#include <dlfcn.h>
#include <memory>

namespace ck_jit {

namespace {

void *open_library(const std::string &path) {
    const LoadLock lock;
    // Local: blobs share names (inline functions of CK), and each must keep its own.
    if (void *handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL))
        return handle;
    const char *reason = ::dlerror();
    throw Failure("dlopen failed: " + std::string(reason ? reason : path));
}

void *find_symbol(void *handle, const std::string &name, const std::string &path) {
    if (void *address = ::dlsym(handle, name.c_str()))
        return address;
    throw Failure("symbol missing: no " + name + " in " + path);
}

// Kept for ever once it is in a slot, like the library.
using KernelArray = std::unique_ptr<void *[]>;
KernelArray new_kernel_array() { return KernelArray(new void *[manifest().kernel_count]()); }

void fill_slots(const BlobEntry &entry, void *handle, const std::string &path) {
    const Manifest &m = manifest();
    std::vector<KernelArray> arrays;
    for (std::uint32_t i = 0; i < entry.instance_count; ++i) {
        const InstanceEntry &instance = m.instances[entry.first_instance + i];
        arrays.push_back(new_kernel_array());
        for (std::uint32_t s = 0; s < instance.symbol_count; ++s) {
            const KernelSymbol &symbol = m.symbols[instance.first_symbol + s];
            arrays.back()[symbol.kernel] = find_symbol(handle, symbol_name(instance, symbol), path);
        }
    }
    for (std::uint32_t i = 0; i < entry.instance_count; ++i) // only once all of them are known
        m.slots[entry.first_instance + i].kernels.store(arrays[i].release(), std::memory_order_release);
}

void *const *find_by_prefix(const Library &library, void *handle) {
    KernelArray kernels = new_kernel_array();
    for (std::size_t k = 0; k < manifest().kernel_count; ++k) {
        const std::string prefix = manifest().kernels[k].symbol_prefix;
        for (const std::string &name : library.functions)
            if (name.compare(0, prefix.size(), prefix) == 0) {
                kernels[k] = find_symbol(handle, name, library.path);
                break;
            }
    }
    return kernels.release();
}

} // namespace

void *const *load(const Blob &blob, const Library &library) {
    void *handle = open_library(library.path);
    log_verbose("loaded " + blob.name + " from " + library.path);
    if (!blob.entry)
        return find_by_prefix(library, handle);
    fill_slots(*blob.entry, handle, library.path);
    return nullptr;
}

} // namespace ck_jit
