// Launches one kernel with arguments of every kind on a stream, and one without arguments on the null stream.
// The padding of the struct is set, so that the record can be compared byte by byte.
#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstring>

struct Padded {
    char first;
    double second;
    short third;
};

template <int N> __global__ void fill(int *to, Padded padded, float scale, char last) {
    to[threadIdx.x] = static_cast<int>(padded.first + padded.second + padded.third + scale) + last + N;
}

__global__ void nothing() {}

int main() {
    Padded padded;
    std::memset(&padded, 0xee, sizeof padded);
    padded.first = 1;
    padded.second = 2;
    padded.third = 3;
    hipStream_t stream = nullptr;
    if (hipStreamCreate(&stream) != hipSuccess)
        return 1;
    fill<7><<<dim3(3, 4, 5), dim3(64, 2), 128, stream>>>(reinterpret_cast<int *>(0x1234), padded, 1.5f, 'x');
    std::puts(hipGetErrorName(hipGetLastError()));
    nothing<<<1, 1>>>();
    std::puts(hipGetErrorName(hipGetLastError()));
    nothing<<<1, 1025>>>();
    std::puts(hipGetErrorName(hipPeekAtLastError()));
    std::puts(hipGetErrorName(hipGetLastError()));
    std::puts(hipGetErrorName(hipGetLastError()));
}
