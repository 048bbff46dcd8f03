// Calls the backward entry point of a fixture with every set of traits that its dispatcher can tell apart.
#include "fmha_bwd.hpp"

#include <initializer_list>

int main() {
    for (int hdim : {32, 64, 128})
        for (const char *dtype : {"fp16", "bf16"})
            for (bool group : {false, true})
                for (bool mask : {false, true})
                    for (bool deterministic : {false, true})
                        for (int level : {0, 1}) {
                            const float r = CALL(fmha_bwd_traits{hdim, dtype, group, mask, deterministic},
                                                 fmha_bwd_args{hdim + 1, hdim + 2}, ck_tile::stream_config{level, mask, level});
                            std::printf("%d %s %d%d%d level %d: %g\n", hdim, dtype, group, mask, deterministic, level, r);
                        }
}
