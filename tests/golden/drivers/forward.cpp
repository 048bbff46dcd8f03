// Calls the forward entry points of a fixture with every set of traits that its dispatcher can tell apart.
#include "fmha_fwd.hpp"

#include <initializer_list>

template <typename Call>
void call_all(const char *name, Call call) {
#ifdef HDIMS_TO
    for (int hdim = 0; hdim <= HDIMS_TO; ++hdim)
#else
    for (int hdim : {32, 64, 96, 128, 256, 512})
#endif
        for (const char *dtype : {"fp16", "bf16", "fp8"})
            for (bool group : {false, true})
                for (bool mask : {false, true})
                    for (bool lse : {false, true})
                        for (int level : {0, 1}) {
                            fmha_fwd_traits t{hdim, dtype, group, mask, lse};
                            fmha_fwd_args a{hdim + group + 10, hdim + mask * 8 + lse * 3};
                            const ck_tile::stream_config s{level + 3, lse, level};
                            const float r = call(t, a, s);
                            std::printf("%s %d %s %d%d%d level %d: %g\n", name, hdim, dtype, group, mask, lse, level, r);
                        }
}

int main() {
    call_all("first", [](auto &t, auto &a, const ck_tile::stream_config &s) { return CALL(t, a, s); });
#ifdef OTHER_CALL
    call_all("other", [](auto &t, auto &a, const ck_tile::stream_config &s) { return OTHER_CALL(t, a, s); });
#endif
}
