// Calls every dispatcher of a library with all traits that its conditions can tell apart. DISPATCHERS:
// F(name) for each.
#include "fmha.hpp"

#define F(name) float name(call_traits, call_args, const ck_tile::stream_config &);
DISPATCHERS
#undef F

template <typename Call> static void call_all(const char *name, Call call) {
    for (int hdim : {32, 63, 64, 128, 129})
        for (int bits = 0; bits < 16; ++bits)
            for (int seqlen = 0; seqlen < 6; ++seqlen) {
                const call_traits t{hdim, bits & 1, (bits & 2) != 0, bits >> 2 & 1, bits >> 3 & 1};
                const float r = call(t, call_args{seqlen}, ck_tile::stream_config{hdim, bits & 1});
                std::printf("%s %d %d %d: %g\n", name, hdim, bits, seqlen, r);
            }
}

int main() {
#define F(name) call_all(#name, name);
    DISPATCHERS
}
