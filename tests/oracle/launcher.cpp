// The entry point for dispatchers that are a launcher's constructor: makes one, prints what it knows, runs
// it.
#include "fmha_bwd.hpp"

float ask_launcher(fmha_bwd_traits t, fmha_bwd_args a, const ck_tile::stream_config &s) {
    const fmha_bwd_launcher launcher(t);
    std::printf("zero %d\n", launcher.needs_zero_dq_acc);
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
        launcher.prepare_workspace_async(&workspace,
                                         [](std::size_t size) { std::printf("prepared %zu\n", size); });
#endif
#endif
    return launcher(a, s);
}
