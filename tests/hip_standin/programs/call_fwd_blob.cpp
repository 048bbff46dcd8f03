// Calls the kernel of one compiled forward blob: call_fwd_blob BLOB.so MANGLED_SYMBOL [LOG_LEVEL]
#include "fmha_fwd.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    void *blob = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    void *symbol = blob ? dlsym(blob, argv[2]) : nullptr;
    if (!symbol) {
        std::fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    auto *call = reinterpret_cast<float (*)(const ck_tile::stream_config &, fmha_fwd_args)>(symbol);

    fmha_fwd_args args;
    memset(static_cast<void *>(&args), 0, sizeof args);
    args.q_ptr = reinterpret_cast<void *>(0x100000);
    args.k_ptr = reinterpret_cast<void *>(0x200000);
    args.v_ptr = reinterpret_cast<void *>(0x300000);
    args.bias_ptr = reinterpret_cast<void *>(0x400000);
    args.o_ptr = reinterpret_cast<void *>(0x500000);
    args.batch = 2;
    args.nhead_q = args.nhead_k = 16;
    args.seqlen_q = args.seqlen_k = args.max_seqlen_q = 1024;
    args.hdim_q = args.hdim_v = 128;
    args.scale_s = args.scale_p = args.scale_o = 1;
    args.stride_q = args.stride_k = args.stride_v = args.stride_o = 16 * 128;
    args.drop_seed_offset = std::pair<uint64_t, uint64_t>{};
    ck_tile::stream_config config;
    config.log_level_ = argc > 3 ? std::atoi(argv[3]) : 0;
    std::printf("\n%g\n", call(config, args));
}
