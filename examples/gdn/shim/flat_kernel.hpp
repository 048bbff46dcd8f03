// FlashInfer's SM90 kernel for the gated delta rule, launched over any list of segments.
#pragma once

#include <cuda_runtime_api.h>

#include "split.hpp"

namespace atlas_gdn {

// One thread block works on one head of one unit.
struct Unit {
    int token = 0;           // where the segment starts
    int length = 0;          // tokens; a multiple of 64 unless the segment ends the sequence
    int state = 0;           // slot in the state buffers, read before and written after
    bool transition = false; // take all values as zero
};

struct UnitList {
    int count = 0;
    Unit unit[2 * kMaxSlots];
};

struct Sequence {
    const void *q, *k, *v; // bf16, rows of `row_stride` elements, heads of 128 side by side
    void *output;          // bf16 [tokens, nv, 128]
    const float *alpha, *beta;
    float scale;
    int tokens, nk, nv, row_stride, gate_stride;
};

// States are [slot][nv][v][k]: the kernel keeps the key index contiguous.
cudaError_t launch_flat(const Sequence &sequence, const UnitList &units, const float *states_in,
                        float *states_out, cudaStream_t stream);

// Loads the kernel onto the current device and lets it use the shared memory it needs.
cudaError_t prepare_flat();

} // namespace atlas_gdn
