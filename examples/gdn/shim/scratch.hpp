// Buffers that live between launches of one call, one set for each device, stream and number of value heads.
#pragma once

#include <cuda_runtime_api.h>

#include <mutex>

#include "stream.hpp"

namespace atlas_gdn {

// Slots of `states_in` and `states_out`: the direct segment (or the whole sequence), then max_slots - 1
// middle segments, then their transitions. `next_in` has max_slots: the middle segments and the last one.
struct Scratch {
    int nv = 0;
    int max_slots = 1;
    float *states_in = nullptr; // slot 0 is written by each call, the rest is constant
    float *states_out = nullptr;
    float *next_in = nullptr;
    std::mutex busy; // held while a call enqueues, so that two threads on one stream do not interleave

    int transition_slot(int middle) const { return max_slots + middle; }
    float *slot(float *states, int index) const;
};

enum class ScratchError { none, capturing, memory, launch };

// Finds the scratch of this stream on the current device, or makes it. Nothing is ever freed: a stream may
// still be using it and a CUDA graph may hold its addresses. Sizes depend on the key alone, so nothing has to
// grow either.
ScratchError find_scratch(const StreamIdentity &identity, cudaStream_t stream, int nv, int max_slots,
                          Scratch **found);

} // namespace atlas_gdn
