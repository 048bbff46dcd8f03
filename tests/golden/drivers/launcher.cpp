// Makes a backward launcher of a fixture for every set of traits, asks it what it knows and runs it.
#include "fmha_bwd.hpp"

#include <initializer_list>

int main() {
    for (int hdim : {32, 64, 128})
        for (bool group : {false, true})
            for (bool deterministic : {false, true})
                for (int level : {0, 1}) {
                    const fmha_bwd_traits t{hdim, "fp16", group, false, deterministic};
                    const fmha_bwd_launcher launcher(t);
                    std::printf("%d %d%d: zero %d\n", hdim, group, deterministic, launcher.needs_zero_dq_acc);
#if GENERATION == 'a'
                    std::printf("splits %d\n", launcher.dq_acc_splits);
#else
                    int workspace = 0;
                    std::printf("host size %zu\n", launcher.host_size);
#if GENERATION == 'b'
                    std::printf("upper bound %zu\n", launcher.device_upper_bound);
                    if (launcher.prepare_workspace)
                        std::printf("prepared %zu\n", launcher.prepare_workspace(&workspace));
#else
                    if (launcher.prepare_workspace_async)
                        launcher.prepare_workspace_async(&workspace, [](std::size_t n) { std::printf("prepared %zu\n", n); });
#endif
                    std::printf("workspace %d\n", workspace);
#endif
                    std::printf("ran %g\n", launcher(fmha_bwd_args{hdim, 3}, ck_tile::stream_config{7, true, level}));
                }
}
