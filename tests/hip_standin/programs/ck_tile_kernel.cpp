// A kernel of our own, launched the way CK launches all of its kernels.
#include "ck_tile/core.hpp"
#include "ck_tile/host/kernel_launch.hpp"

#include <cstdio>
#include <cstring>

struct Kargs {
    const float *from;
    float *to;
    char tag;
    double scale;
    ck_tile::index_t count;
};

struct ScaleKernel {
    static constexpr ck_tile::index_t kBlockSize = 256;

    CK_TILE_DEVICE void operator()(Kargs kargs) const {
        const auto i = ck_tile::get_block_id() * kBlockSize + ck_tile::get_thread_id();
        if (i < kargs.count)
            kargs.to[i] = kargs.from[i] * static_cast<float>(kargs.scale);
    }
};

int main(int argc, char **) {
    Kargs kargs;
    memset(static_cast<void *>(&kargs), 0xee, sizeof kargs);
    kargs.from = reinterpret_cast<const float *>(0x1000);
    kargs.to = reinterpret_cast<float *>(0x2000);
    kargs.tag = 't';
    kargs.scale = 0.5;
    kargs.count = 1000;
    ck_tile::stream_config config;
    config.time_kernel_ = argc > 1;
    std::printf("%g\n", ck_tile::launch_kernel(
                            config, ck_tile::make_kernel<1>(ScaleKernel{}, dim3(4), dim3(256), 512, kargs)));
}
