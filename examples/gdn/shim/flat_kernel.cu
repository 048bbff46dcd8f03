#include "flat_kernel.hpp"

#include <cuda_bf16.h>

#include <cute/tensor.hpp>
#include <cutlass/cutlass.h>
#include <cutlass/device_kernel.h>
#include <cutlass/gemm/dispatch_policy.hpp>
#include <cutlass/kernel_hardware_info.h>

#include <flashinfer/flat/common.hpp>
#include <flashinfer/flat/hopper/collective/flat_collective_tma_warpspecialized_delta_rule.hpp>
#include <flashinfer/flat/hopper/kernel/flat_kernel_tma_warpspecialized_delta_rule.hpp>

namespace atlas_gdn {
namespace {

// The library's own scheduler reads segment borders from a device array and pairs each segment with one state
// and one set of values. This one takes the list of units by value: nothing to write on the stream, segments
// may repeat (U and F of the same tokens), and a transition asks for a value head that does not exist, which
// the copy engine fills with zeros.
struct UnitScheduler {
    struct Params {
        UnitList units;
        int nv = 1;
        int group = 1;
        dim3 grid() const { return dim3(units.count * nv); }
    };

    struct Work {
        int32_t seq_idx; // the kernel's name for what is here the state slot
        int64_t tok_offset;
        int64_t seq_len;
        int32_t key_head;
        int32_t value_head;
        int32_t value_source;

        CUTE_DEVICE bool is_valid(const Params &) const { return seq_idx >= 0; }
        CUTE_DEVICE int32_t q_head_idx() const { return key_head; }
        CUTE_DEVICE int32_t k_head_idx() const { return key_head; }
        CUTE_DEVICE int32_t v_head_idx() const { return value_source; }
        CUTE_DEVICE int32_t o_head_idx() const { return value_head; } // also selects gate, beta and state
    };

    CUTE_DEVICE explicit UnitScheduler(const Params &) {}

    template <class ProblemShape> CUTE_DEVICE Work get_next_work(const Params &params, const ProblemShape &) {
        const Unit &unit = params.units.unit[blockIdx.x / params.nv];
        const int head = blockIdx.x % params.nv;
        const bool again = std::exchange(done_, true);
        return Work{again ? -1 : unit.state, unit.token, unit.length,
                    head / params.group,     head,       unit.transition ? params.nv : head};
    }

    bool done_ = false;
};

using Tag = flat::kernel::Tag;
template <Tag tag, class Value> using Option = flat::kernel::Option<tag, Value>;
// One stage for V: the kernel releases the stage after the one it has read. With the usual two, an arrival
// can come while the loading thread still waits for the one before; two arrivals then look like none, and the
// kernel hangs (seen: docs/gdn.md). With one stage, the next stage is the same one.
using Options =
    std::tuple<Option<Tag::kIsDeltaRule, cute::true_type>, Option<Tag::kIsGVA, cute::true_type>,
               Option<Tag::kNeedsBeta, cute::true_type>, Option<Tag::kNeedsAlpha, cute::true_type>,
               Option<Tag::kInitStateFromInput, cute::true_type>, Option<Tag::kStagesV, cute::Int<1>>>;
using Element = cutlass::bfloat16_t;
using Stride = cute::tuple<int64_t, cute::_1, int32_t>; // token, element, head
using Mainloop = flat::collective::FlatMainloopTmaWarpSpecializedDeltaRule<
    Element, float, float, cute::Shape<cute::Int<kChunk>, cute::Int<kChunk>, cute::_128>, Stride, Stride,
    Stride, Stride, Options>;
using Kernel = flat::kernel::FlatKernelTmaWarpSpecializedDeltaRule<Mainloop, UnitScheduler, Options>;

constexpr int kHeadSize = 128;

Kernel::ProblemShape problem_of(const Sequence &s, const UnitList &units) {
    int slots = 0;
    for (int i = 0; i < units.count; ++i)
        slots = std::max(slots, units.unit[i].state + 1);
    Kernel::ProblemShape problem{};
    problem.total_seqlen = s.tokens;
    problem.num_seqs = slots; // the kernel lets the last slot alone end in a partial chunk
    problem.num_q_heads = problem.num_k_heads = s.nk;
    problem.num_v_heads = problem.num_o_heads = problem.num_sab_heads = s.nv;
    problem.head_size = kHeadSize;
    return problem;
}

Mainloop::Arguments arguments_of(const Sequence &s, const float *states_in, float *states_out) {
    const Stride packed{s.row_stride, cute::_1{}, kHeadSize};
    Mainloop::Arguments arguments{};
    arguments.ptr_Q = static_cast<const Element *>(s.q);
    arguments.ptr_K = static_cast<const Element *>(s.k);
    arguments.ptr_V = static_cast<const Element *>(s.v);
    arguments.ptr_O = static_cast<Element *>(s.output);
    arguments.dQ = arguments.dK = arguments.dV = packed;
    arguments.dO = Stride{int64_t{s.nv} * kHeadSize, cute::_1{}, kHeadSize};
    arguments.ptr_output_state = states_out;
    arguments.ptr_input_state = states_in;
    arguments.scale = s.scale;
    arguments.alpha_ptr = s.alpha;
    arguments.beta_ptr = s.beta;
    arguments.alpha_stride = arguments.beta_stride = {s.gate_stride, 1};
    return arguments;
}

} // namespace

cudaError_t prepare_flat() {
    return cudaFuncSetAttribute(cutlass::device_kernel<Kernel>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                Kernel::SharedStorageSize);
}

cudaError_t launch_flat(const Sequence &sequence, const UnitList &units, const float *states_in,
                        float *states_out, cudaStream_t stream) {
    const auto problem = problem_of(sequence, units);
    const UnitScheduler::Params scheduler{units, sequence.nv, sequence.nv / sequence.nk};
    // No workspace: it would hold the store descriptors of partial chunks inside a sequence, and there are
    // none.
    Kernel::Params params{
        problem,
        Mainloop::to_underlying_arguments(problem, arguments_of(sequence, states_in, states_out), nullptr),
        scheduler};
    void *launch_arguments[] = {&params};
    return cudaLaunchKernel(reinterpret_cast<const void *>(cutlass::device_kernel<Kernel>), scheduler.grid(),
                            dim3(Kernel::MaxThreadsPerBlock), launch_arguments, Kernel::SharedStorageSize,
                            stream);
}

} // namespace atlas_gdn
