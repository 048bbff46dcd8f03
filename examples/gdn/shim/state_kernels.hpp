// The small kernels around the big one. A state is 128 x 128 floats; the caller's is [k][v], the kernel's
// [v][k].
#pragma once

#include <cuda_runtime_api.h>

namespace atlas_gdn {

constexpr int kStateFloats = 128 * 128;

cudaError_t transpose_states(const float *in, float *out, int count, cudaStream_t stream);

// Slot 0 is left alone, slots 1 .. zeros become zero, `identities` more slots become the identity; nv states
// a slot.
cudaError_t fill_start_states(float *states, int nv, int zeros, int identities, cudaStream_t stream);

// next[0] = direct, next[i] = next[i-1] transitions[i-1] + locals[i-1]: the states that middle segments and
// the last one start from. Each array holds nv states a segment; `middles` is the number of locals and of
// transitions.
cudaError_t scan_states(const float *direct, const float *locals, const float *transitions, float *next,
                        int nv, int middles, cudaStream_t stream);

} // namespace atlas_gdn
