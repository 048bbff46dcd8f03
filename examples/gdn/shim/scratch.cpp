#include "scratch.hpp"

#include <map>
#include <memory>
#include <tuple>

#include "state_kernels.hpp"

namespace atlas_gdn {
namespace {

using Key = std::tuple<int, unsigned long long, int>; // device, stream, nv

ScratchError allocate(Scratch &scratch, cudaStream_t stream) {
    const size_t slot = size_t(scratch.nv) * kStateFloats;
    const size_t pass_one = size_t(2 * scratch.max_slots - 1) * slot;
    const size_t pass_two = scratch.max_slots > 1 ? size_t(scratch.max_slots) * slot : 0;
    float *base = nullptr;
    {
        const RelaxedCapture relaxed;
        if (cudaMalloc(reinterpret_cast<void **>(&base), (2 * pass_one + pass_two) * sizeof(float)) !=
            cudaSuccess) {
            cudaGetLastError(); // the status reports it; the next launch should not find it again
            return ScratchError::memory;
        }
    }
    scratch.states_in = base;
    scratch.states_out = base + pass_one;
    scratch.next_in = base + 2 * pass_one;
    const int middles = scratch.max_slots - 1;
    if (fill_start_states(base, scratch.nv, middles, middles, stream) != cudaSuccess)
        return ScratchError::launch;
    return ScratchError::none;
}

} // namespace

float *Scratch::slot(float *states, int index) const { return states + size_t(index) * nv * kStateFloats; }

ScratchError find_scratch(const StreamIdentity &identity, cudaStream_t stream, int nv, int max_slots,
                          Scratch **found) {
    // Both are leaked on purpose: a call from a destructor at exit must still find them.
    static std::mutex &lock = *new std::mutex;
    static auto &all = *new std::map<Key, std::unique_ptr<Scratch>>;

    const std::lock_guard<std::mutex> guard(lock);
    auto &entry = all[Key{identity.device, identity.id, nv}];
    if (!entry) {
        if (identity.capturing)
            return ScratchError::capturing;
        auto made = std::make_unique<Scratch>();
        made->nv = nv;
        made->max_slots = max_slots;
        if (const auto error = allocate(*made, stream); error != ScratchError::none)
            return error;
        entry = std::move(made);
    }
    *found = entry.get();
    return ScratchError::none;
}

} // namespace atlas_gdn
