// Eight threads launch a kernel a thousand times each, on their own streams, with their number as the
// argument.
#include <hip/hip_runtime.h>

#include <thread>
#include <vector>

__global__ void numbered(int thread, int round, int *to) { *to = thread + round; }

int main() {
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i)
        threads.emplace_back([i] {
            hipStream_t stream = nullptr;
            (void)hipStreamCreate(&stream);
            for (int round = 0; round < 1000; ++round)
                numbered<<<1, 64, 0, stream>>>(i, round, nullptr);
            (void)hipStreamSynchronize(stream);
            (void)hipStreamDestroy(stream);
        });
    for (std::thread &thread : threads)
        thread.join();
    return hipGetLastError() == hipSuccess ? 0 : 1;
}
