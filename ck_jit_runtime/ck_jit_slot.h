// SPDX-License-Identifier: MIT
//
// The warm path: what a rewritten dispatcher does between the call and the kernel's host function.
// Included by generated code; everything else of the runtime stays behind resolve().
#pragma once

#include <atomic>
#include <cstddef>

namespace [[gnu::visibility("hidden")]] ck_jit {

// One kernel instance: what the specialisations of one blob for one set of traits share.
// `kernels` is null until the blob is loaded, then points to an array indexed by kernel template
// (Manifest::kernels), in which the functions that the instance defines are not null. It never goes back.
struct Slot {
    std::atomic<void *const *> kernels{nullptr};
};

// Loads every instance of the list (null ones are skipped), missing blobs in parallel. On failure the
// calling thread's error text is set, a message is on stderr and the result is false. Never throws.
bool resolve(Slot *const *slots, std::size_t count) noexcept;

// A function of its own: with the list in the caller's frame the compiler could not turn the caller's last
// call, that of the kernel, into a jump, and would copy the arguments (some hundred bytes) once more on every
// call.
template <typename... Slots> [[gnu::noinline, gnu::cold]] bool resolve_all(Slots *...slots) noexcept {
    Slot *const list[] = {slots...};
    return resolve(list, sizeof...(slots));
}

// True once all the given instances (null: none) can be called. One acquire load each when warm.
template <typename... Slots> inline bool ready(Slots *...slots) noexcept {
    if (((!slots || slots->kernels.load(std::memory_order_acquire)) && ...))
        return true;
    return resolve_all(slots...);
}

// The host function of kernel template number `Kernel` in a ready instance.
template <typename Function, std::size_t Kernel> inline Function kernel(const Slot *slot) noexcept {
    return reinterpret_cast<Function>(slot->kernels.load(std::memory_order_acquire)[Kernel]);
}

} // namespace ck_jit
