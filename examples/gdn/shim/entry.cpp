// The C ABI: checks arguments, picks the split, enqueues the launches. Compiled by the host compiler with
// debug information, so that ck-post-build can compare its signatures with the header.
#include "../atlas_gdn.h"

#include <atomic>
#include <cmath>
#include <cstdint>

#include "device.hpp"
#include "flat_kernel.hpp"
#include "scratch.hpp"
#include "split.hpp"
#include "state_kernels.hpp"
#include "stream.hpp"

namespace atlas_gdn {
namespace {

constexpr int kHeadSize = 128;
std::atomic<int> slot_limit{0};

bool good_pointer(const void *pointer, uintptr_t alignment) {
    return pointer != nullptr && reinterpret_cast<uintptr_t>(pointer) % alignment == 0;
}

struct Call {
    void *qkv, *gate_beta, *output, *h_state;
    float scale;
    int tokens, nk, nv, kd, vd, conv_dim, gb_stride, num_seqs;
    cudaStream_t stream;
};

// The first bad argument in the order of the signature, except that sizes come before what is computed from
// them.
int check(const Call &c) {
    if (!good_pointer(c.qkv, 16))
        return ATLAS_GDN_BAD_QKV;
    if (!good_pointer(c.gate_beta, 4))
        return ATLAS_GDN_BAD_GATE_BETA;
    if (!good_pointer(c.output, 16))
        return ATLAS_GDN_BAD_OUTPUT;
    if (!good_pointer(c.h_state, 16))
        return ATLAS_GDN_BAD_H_STATE;
    if (!std::isfinite(c.scale))
        return ATLAS_GDN_BAD_SCALE;
    if (c.tokens < 1)
        return ATLAS_GDN_BAD_TOTAL_SEQLEN;
    if (c.nk < 1)
        return ATLAS_GDN_BAD_NK;
    if (c.nv < 1 || c.nv % c.nk != 0)
        return ATLAS_GDN_BAD_NV;
    if (c.kd != kHeadSize)
        return ATLAS_GDN_BAD_KD;
    if (c.vd != kHeadSize)
        return ATLAS_GDN_BAD_VD;
    const int64_t row = (int64_t{2} * c.nk + c.nv) * kHeadSize;
    if (c.conv_dim < row || c.conv_dim % 8 != 0)
        return ATLAS_GDN_BAD_CONV_DIM;
    if (c.gb_stride < int64_t{2} * c.nv)
        return ATLAS_GDN_BAD_GB_STRIDE;
    return c.num_seqs == 1 ? ATLAS_GDN_OK : ATLAS_GDN_BAD_NUM_SEQS;
}

int status_of(ScratchError error) {
    switch (error) {
    case ScratchError::none:
        return ATLAS_GDN_OK;
    case ScratchError::capturing:
        return ATLAS_GDN_NEEDS_WARM_UP;
    case ScratchError::memory:
        return ATLAS_GDN_OUT_OF_MEMORY;
    case ScratchError::launch:
        break;
    }
    return ATLAS_GDN_LAUNCH_FAILED;
}

Sequence sequence_of(const Call &c) {
    const char *q = static_cast<const char *>(c.qkv);
    const size_t keys = size_t(c.nk) * kHeadSize * sizeof(uint16_t);
    const float *alpha = static_cast<const float *>(c.gate_beta);
    return Sequence{q,       q + keys, q + 2 * keys, c.output, alpha,      alpha + c.nv,
                    c.scale, c.tokens, c.nk,         c.nv,     c.conv_dim, c.gb_stride};
}

UnitList first_pass(const Split &split, const Scratch &scratch, int tokens) {
    UnitList list;
    if (split.slots == 1) {
        list.unit[list.count++] = Unit{0, tokens, 0, false};
        return list;
    }
    // The longest first: blocks start in order.
    list.unit[list.count++] = Unit{0, split.first * kChunk, 0, false};
    for (const bool transition : {false, true})
        for (int i = 0; i < split.slots - 1; ++i)
            list.unit[list.count++] = Unit{(split.first + i * split.middle) * kChunk, split.middle * kChunk,
                                           transition ? scratch.transition_slot(i) : 1 + i, transition};
    return list;
}

UnitList second_pass(const Split &split, int tokens) {
    UnitList list;
    for (int i = 0; i < split.slots; ++i) {
        const int start = (split.first + i * split.middle) * kChunk;
        const int length = i == split.slots - 1 ? tokens - start : split.middle * kChunk;
        list.unit[list.count++] = Unit{start, length, i, false};
    }
    return list;
}

// `final_state` is where the last launch leaves the state, in the kernel's layout.
cudaError_t run_split(const Call &c, const Split &split, const Scratch &scratch, const float **final_state) {
    const Sequence sequence = sequence_of(c);
    cudaError_t error = launch_flat(sequence, first_pass(split, scratch, c.tokens), scratch.states_in,
                                    scratch.states_out, c.stream);
    *final_state = scratch.states_out;
    if (split.slots == 1 || error != cudaSuccess)
        return error;
    error = scan_states(scratch.states_out, scratch.slot(scratch.states_out, 1),
                        scratch.slot(scratch.states_out, scratch.transition_slot(0)), scratch.next_in, c.nv,
                        split.slots - 1, c.stream);
    if (error != cudaSuccess)
        return error;
    // The scan is done with the first pass's states, so their buffer takes those of the second.
    *final_state = scratch.slot(scratch.states_out, split.slots - 1);
    return launch_flat(sequence, second_pass(split, c.tokens), scratch.next_in, scratch.states_out, c.stream);
}

cudaError_t enqueue(const Call &c, const Split &split, Scratch &scratch) {
    const std::lock_guard<std::mutex> guard(scratch.busy);
    auto *state = static_cast<float *>(c.h_state);
    const float *final_state = nullptr;
    cudaError_t error = transpose_states(state, scratch.states_in, c.nv, c.stream);
    if (error == cudaSuccess)
        error = run_split(c, split, scratch, &final_state);
    if (error == cudaSuccess)
        error = transpose_states(final_state, state, c.nv, c.stream);
    if (error != cudaSuccess)
        cudaGetLastError(); // the status reports it; the caller's next launch should not find it again
    return error;
}

int run(const Call &c) {
    if (const int status = check(c); status != ATLAS_GDN_OK)
        return status;
    StreamIdentity stream;
    if (const auto answer = identify(c.stream, &stream); answer != StreamAnswer::known)
        return answer == StreamAnswer::invalid ? ATLAS_GDN_BAD_STREAM : ATLAS_GDN_NEEDS_WARM_UP;
    DeviceInfo info;
    if (!device_info(stream.device, &info) || !info.hopper)
        return ATLAS_GDN_BAD_DEVICE;
    const DeviceGuard guard(stream.device);
    if (!guard.ok())
        return ATLAS_GDN_BAD_DEVICE;

    const int room = std::max(1, std::min(info.multiprocessors / c.nv, kMaxSlots));
    Scratch *scratch = nullptr;
    if (const auto error = find_scratch(stream, c.stream, c.nv, room, &scratch); error != ScratchError::none)
        return status_of(error);
    const int limit = slot_limit.load(std::memory_order_relaxed);
    const int chunks = (c.tokens - 1) / kChunk + 1;
    const Split split = limit == 0 ? choose_split(chunks, room) : forced_split(chunks, std::min(limit, room));
    return enqueue(c, split, *scratch) == cudaSuccess ? ATLAS_GDN_OK : ATLAS_GDN_LAUNCH_FAILED;
}

} // namespace
} // namespace atlas_gdn

extern "C" void atlas_gdn_load(void) {
    int device = 0;
    atlas_gdn::DeviceInfo info;
    // Nothing to report to: without a device each call says ATLAS_GDN_BAD_DEVICE itself.
    if (cudaGetDevice(&device) != cudaSuccess || !atlas_gdn::device_info(device, &info))
        cudaGetLastError();
}

extern "C" int atlas_gdn_prefill_packed_managed(void *qkv, void *gate_beta, void *output, void *h_state,
                                                float scale, int total_seqlen, int nk, int nv, int kd, int vd,
                                                int conv_dim, int gb_stride, int num_seqs, void *stream) {
    return atlas_gdn::run({qkv, gate_beta, output, h_state, scale, total_seqlen, nk, nv, kd, vd, conv_dim,
                           gb_stride, num_seqs, static_cast<cudaStream_t>(stream)});
}

extern "C" int atlas_gdn_limit_slots(int slots) {
    if (slots < 0)
        return ATLAS_GDN_BAD_SLOTS;
    atlas_gdn::slot_limit.store(slots, std::memory_order_relaxed);
    return ATLAS_GDN_OK;
}
