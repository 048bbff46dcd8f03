// SPDX-License-Identifier: MIT
//
// One direction of the benchmark: its calls, which differ in what the dispatcher decides by.
#pragma once

#include <string>
#include <vector>

struct Problem {
    std::string name, data_type;
    int head_size;
    bool group = false;
    int mask = 0; // as CK numbers mask_enum
    int bias = 0; // as CK numbers bias_enum
    bool dropout = false;
};

// The same for all directions, those that no kernel is for included.
inline const std::vector<Problem> problems{
    {"bf16, 128", "bf16", 128},
    {"bf16, 128, causal", "bf16", 128, false, 2},
    {"bf16, 128, group, causal", "bf16", 128, true, 2},
    {"fp16, 64", "fp16", 64},
    {"fp16, 64, bias, dropout", "fp16", 64, false, 0, 1, true},
    {"fp16, 256, group, alibi", "fp16", 256, true, 0, 2},
    {"bf16, 512: no kernel", "bf16", 512},
};

// What the arguments of all directions have.
template <typename Traits, typename Args> void fill(Traits &traits, Args &args, const Problem &p) {
    traits.hdim_q = traits.hdim_v = args.hdim_q = args.hdim_v = p.head_size;
    traits.data_type = p.data_type;
    traits.is_group_mode = p.group;
    traits.mask_type = static_cast<decltype(traits.mask_type)>(p.mask);
    traits.bias_type = static_cast<decltype(traits.bias_type)>(p.bias);
    traits.has_dropout = p.dropout;
    args.seqlen_q = args.seqlen_k = args.max_seqlen_q = 4096;
    args.batch = 4;
    args.nhead_q = args.nhead_k = 32;
}

// Calls the dispatcher at `function` for one problem `count` times and returns the last result.
float call(void *function, const Problem &problem, long count);
