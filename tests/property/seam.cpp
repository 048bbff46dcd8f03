// Takes the place of the runtime: finds an instance's kernels among the blobs of the same program, by the
// names that the manifest gives, and says which blob the runtime would load.
#include "ck_jit_by_name.h"
#include "ck_jit_manifest.cpp"

#include <cstdio>
#include <dlfcn.h>
#include <string>
#include <vector>

namespace ck_jit {

static void load(Slot *slot) {
    const Manifest &all = manifest();
    const InstanceEntry &instance = all.instances[slot - all.slots];
    std::printf("load %s\n", all.entries[instance.blob].name);
    auto *kernels = new std::vector<void *>(all.kernel_count);
    for (std::uint32_t n = 0; n < instance.symbol_count; ++n) {
        const KernelSymbol &symbol = all.symbols[instance.first_symbol + n];
        const std::string name = std::string(all.kernels[symbol.kernel].symbol_prefix) +
                                 instance.symbol_middle + all.suffixes[symbol.suffix];
        (*kernels)[symbol.kernel] = dlsym(RTLD_DEFAULT, name.c_str());
        if (!(*kernels)[symbol.kernel])
            std::printf("missing %s\n", name.c_str());
    }
    slot->kernels.store(kernels->data(), std::memory_order_release);
}

bool resolve(Slot *const *slots, std::size_t count) noexcept {
    for (std::size_t n = 0; n < count; ++n)
        if (slots[n] && !slots[n]->kernels.load())
            load(slots[n]);
    return true;
}

Slot *slot_by_name(const char *, std::size_t) noexcept { return nullptr; } // nobody calls by name here

} // namespace ck_jit
