// Stands where the runtime's resolve() stands: a slot is filled with the recording functions of the symbols
// that the library's own manifest names, instead of a compiled blob's.
#include "ck_jit_by_name.h"
#include "ck_jit_slot.h"
#include "ck_jit_tables.h"
#include "recorder.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

namespace ck_jit {

namespace {

[[noreturn]] void give_up(const char *why, const std::string &what) {
    std::fprintf(stderr, "oracle: %s: %s\n", why, what.c_str());
    std::abort();
}

void fill(Slot &slot) {
    const Manifest &all = manifest();
    const InstanceEntry &instance = all.instances[&slot - all.slots];
    void **kernels = new void *[all.kernel_count]();
    for (std::uint32_t i = 0; i < instance.symbol_count; ++i) {
        const KernelSymbol &symbol = all.symbols[instance.first_symbol + i];
        const std::string name = std::string(all.kernels[symbol.kernel].symbol_prefix) +
                                 instance.symbol_middle + all.suffixes[symbol.suffix];
        const int number = oracle::number_of(name);
        if (number < 0)
            continue; // the original dispatcher does not refer to it
        if (std::strcmp(oracle::blobs[number], all.entries[instance.blob].name) != 0)
            give_up("the slot's blob is not the symbol's", name);
        kernels[symbol.kernel] = dlsym(RTLD_DEFAULT, name.c_str());
        if (!kernels[symbol.kernel])
            give_up("no recording function", name);
    }
    slot.kernels.store(kernels, std::memory_order_release);
}

} // namespace

bool resolve(Slot *const *slots, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i)
        if (slots[i] && !slots[i]->kernels.load(std::memory_order_acquire))
            fill(*slots[i]);
    return true;
}

Slot *slot_by_name(const char *blob, std::size_t) noexcept { give_up("called by name", blob ? blob : ""); }

} // namespace ck_jit
