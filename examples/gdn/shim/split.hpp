// How one sequence is cut so that more than nv multiprocessors work on it.
//
// The rule is affine in the state: the final state of a segment is F S + U, where U is its final state from a
// zero state and F, the product of its transitions, is its final state from the identity with all values
// zero. So:
//
//   pass 1   the first segment from its true state, which gives its outputs; U and F of each middle one
//   scan     S of each next segment from the one before: one small matrix product a segment
//   pass 2   middle segments and the last one, each from its own S, for the outputs
//
// With room for `slots` segments at once, lengths 2m, m (slots - 1 times) and m make pass 1 take 2m and pass
// 2 take m: 3m in all instead of (slots + 2)m.
#pragma once

#include <algorithm>

namespace atlas_gdn {

constexpr int kChunk = 64;    // tokens the kernel takes in one step
constexpr int kMaxSlots = 16; // bounds the unit tables and the chain of the scan

// Lengths in chunks. `slots` of 1 means the sequence is not cut and only `first` counts.
struct Split {
    int slots = 1;
    int first = 0;
    int middle = 0;
    int last = 0;
};

// What the launches take, in tenths of the time of a chunk. Measured on an H200 (docs/gdn.md): the second
// launch costs about two chunks, and each middle segment about three, for its states and its step of the
// scan.
inline int cost(const Split &split) {
    if (split.slots == 1)
        return 10 * split.first;
    const int chunks = std::max(split.first, 2 * split.middle) + std::max(split.middle, split.last);
    return 10 * chunks + 20 + 28 * (split.slots - 1);
}

inline Split cut(int chunks, int slots, int middle) {
    Split split{slots, 2 * middle, middle, 0};
    split.last = chunks - split.first - (slots - 1) * middle;
    if (split.last < 1) { // rounding up the middle used up the last segment: the first one gives way
        split.first -= 1 - split.last;
        split.last = 1;
    }
    return split;
}

// The cheapest cut for at most `max_slots` segments at once.
inline Split choose_split(int chunks, int max_slots) {
    Split best{1, chunks, 0, 0};
    for (int slots = 2; slots <= std::min(max_slots, kMaxSlots); ++slots) {
        const int down = chunks / (slots + 2);
        for (int middle : {down, down + 1}) {
            if (middle < 1)
                continue;
            const Split candidate = cut(chunks, slots, middle);
            if (candidate.first >= 1 && cost(candidate) < cost(best))
                best = candidate;
        }
    }
    return best;
}

// The cut with exactly `slots` segments at once, or none if the sequence is too short for it.
inline Split forced_split(int chunks, int slots) {
    slots = std::min(slots, kMaxSlots);
    const int middle = chunks / (slots + 2);
    return slots < 2 || middle < 1 ? Split{1, chunks, 0, 0} : cut(chunks, slots, middle);
}

} // namespace atlas_gdn
