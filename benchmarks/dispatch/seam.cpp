// SPDX-License-Identifier: MIT
//
// What both dispatchers are linked with: a device, and for ours a runtime whose kernels are all the one that
// the original's kernel symbols lead to.
#include <cstdlib>
#include <cstring>
#include <hip/hip_runtime_api.h>

extern "C" hipError_t hipGetDevice(int *device) {
    *device = 0;
    return hipSuccess;
}

// Copies a whole description, as HIP does: the dispatchers ask for it on every call.
extern "C" hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_t *properties, int) {
    static const hipDeviceProp_t device = [] {
        hipDeviceProp_t filled{};
        std::strcpy(filled.gcnArchName, "gfx942");
        filled.multiProcessorCount = 304;
        return filled;
    }();
    *properties = device;
    return hipSuccess;
}

extern "C" hipError_t hipPeekAtLastError() { return hipSuccess; }

#ifdef BENCH_OURS
#include "ck_jit_by_name.h"
#include "ck_jit_tables.h"

#include <vector>

extern "C" int bench_kernel();

namespace ck_jit {

bool resolve(Slot *const *slots, std::size_t count) noexcept {
    static const std::vector<void *> kernels(manifest().kernel_count, reinterpret_cast<void *>(bench_kernel));
    for (std::size_t i = 0; i < count; ++i)
        if (slots[i])
            slots[i]->kernels.store(kernels.data(), std::memory_order_release);
    return true;
}

Slot *slot_by_name(const char *, std::size_t) noexcept { std::abort(); }

} // namespace ck_jit
#endif
