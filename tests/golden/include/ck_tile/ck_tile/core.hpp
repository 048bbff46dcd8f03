// What the fixtures' dispatchers and blobs need of ck_tile. Kernels only say that they ran.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <type_traits>

namespace ck_tile {

using index_t = int;

struct gfx9_t {};
struct gfx950_t {};

enum class BiasEnum { no_bias, elementwise, alibi };

template <bool IsMasking>
struct GenericMask {};

struct stream_config {
    int stream_id_ = 0;
    bool time_kernel_ = false;
    int log_level_ = 0;
};

inline std::string get_device_name() {
    const char *device = std::getenv("CK_TEST_DEVICE");
    return device ? device : "gfx942";
}

inline float say(const char *kernel, const stream_config &s, int argument) {
    std::printf("%s (%d) on stream %d\n", kernel, argument, s.stream_id_);
    return static_cast<float>(argument) / 2;
}

template <typename... Callables>
float launch_kernel(const stream_config &s, Callables &&...callables) {
    (callables(s), ...);
    return s.time_kernel_ ? 1.5f : 0.f;
}

} // namespace ck_tile

#ifdef CK_TEST_ARCH
// What clang puts into .hip_fatbin: a bundle with one code object, here nothing but the header of an AMDGPU ELF file.
asm(".pushsection .hip_fatbin, \"a\", @progbits\n"
    ".ascii \"__CLANG_OFFLOAD_BUNDLE__\"\n"
    ".quad 1, 4096, 64, ck_test_arch_end - ck_test_target\n"
    "ck_test_target: .ascii \"hipv4-amdgcn-amd-amdhsa--\"\n"
    ".ascii \"" CK_TEST_ARCH "\"\n"
    "ck_test_arch_end:\n"
    ".org 4096\n"
    ".byte 0x7f, 0x45, 0x4c, 0x46, 2, 1, 1, 64\n"
    ".zero 8\n"
    ".short 3, 224\n"
    ".zero 44\n"
    ".popsection\n");
#endif
