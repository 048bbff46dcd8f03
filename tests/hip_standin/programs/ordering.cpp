// Exits with the number of the line on which streams did not keep their order.
#include <hip/hip_runtime.h>

#include <atomic>
#include <chrono>
#include <thread>

#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            return __LINE__;                                                                                 \
    } while (0)
#define HIP(call) CHECK((call) == hipSuccess)

namespace {

struct Step {
    std::atomic<bool> may_run{false};
    std::thread::id thread;
    int *device_value = nullptr;
    int seen = -1;
};

void run_step(void *data) {
    auto *step = static_cast<Step *>(data);
    while (!step->may_run)
        std::this_thread::yield();
    step->thread = std::this_thread::get_id();
    step->seen = *step->device_value;
    *step->device_value = 2;
}

} // namespace

int main() {
    int *device_value = nullptr;
    int *pinned = nullptr;
    HIP(hipMalloc(reinterpret_cast<void **>(&device_value), sizeof(int)));
    HIP(hipHostMalloc(reinterpret_cast<void **>(&pinned), sizeof(int)));
    hipStream_t stream = nullptr;
    hipStream_t other = nullptr;
    hipStream_t independent = nullptr;
    HIP(hipStreamCreate(&stream));
    HIP(hipStreamCreate(&other));
    HIP(hipStreamCreateWithFlags(&independent, hipStreamNonBlocking));
    hipEvent_t event = nullptr;
    hipEvent_t later = nullptr;
    HIP(hipEventCreate(&event));
    HIP(hipEventCreate(&later));
    float ms = -1;

    // copy, host function, copy: the host function sees the first copy, the second copy what the host
    // function wrote.
    const int one = 1;
    int result = 0;
    Step step;
    step.device_value = device_value;
    HIP(hipMemcpyAsync(device_value, &one, sizeof one, hipMemcpyHostToDevice, stream));
    HIP(hipLaunchHostFunc(stream, run_step, &step));
    HIP(hipMemcpyAsync(&result, device_value, sizeof result, hipMemcpyDeviceToHost, stream));
    HIP(hipEventRecord(event, stream));
    CHECK(hipStreamQuery(stream) == hipErrorNotReady);
    CHECK(hipEventQuery(event) == hipErrorNotReady);
    CHECK(hipEventElapsedTime(&ms, event, event) == hipErrorNotReady);
    CHECK(hipGetLastError() == hipSuccess); // "not ready" is no error

    // The null stream waits for the others, they wait for it, and a stream that waits for an event waits.
    int by_null = 0;
    int by_other = 0;
    HIP(hipMemcpyAsync(&by_null, device_value, sizeof by_null, hipMemcpyDeviceToHost, nullptr));
    HIP(hipStreamWaitEvent(other, event, 0));
    HIP(hipMemcpyAsync(&by_other, device_value, sizeof by_other, hipMemcpyDeviceToHost, other));
    HIP(hipMemcpyAsync(pinned, &one, sizeof one, hipMemcpyHostToHost, independent));
    HIP(hipStreamSynchronize(independent));
    CHECK(*pinned == 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK(result == 0 && by_null == 0 && by_other == 0);

    step.may_run = true;
    HIP(hipDeviceSynchronize());
    CHECK(step.seen == 1);
    CHECK(step.thread != std::this_thread::get_id() && step.thread != std::thread::id());
    CHECK(result == 2 && by_null == 2 && by_other == 2);
    HIP(hipEventRecord(later, stream));
    HIP(hipEventSynchronize(later));
    HIP(hipEventElapsedTime(&ms, event, later));
    CHECK(ms >= 0 && ms < 60000);

    // hipMemcpy and hipFree wait for what is queued; a destroyed stream's work still runs.
    Step again;
    again.device_value = device_value;
    HIP(hipMemset(device_value, 0, sizeof(int)));
    HIP(hipLaunchHostFunc(stream, run_step, &again));
    HIP(hipStreamDestroy(other));
    CHECK(hipStreamDestroy(other) == hipErrorInvalidHandle);
    CHECK(hipGetLastError() == hipErrorInvalidHandle);
    std::thread releaser([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        again.may_run = true;
    });
    HIP(hipMemcpy(&result, device_value, sizeof result, hipMemcpyDeviceToHost));
    releaser.join();
    CHECK(again.seen == 0 && result == 2);
    HIP(hipFree(device_value));
    CHECK(hipFree(device_value) == hipErrorInvalidValue);
    HIP(hipHostFree(pinned));
    HIP(hipEventDestroy(event));
    CHECK(hipEventRecord(event, nullptr) == hipErrorInvalidHandle);
    HIP(hipStreamDestroy(stream));
    return 0;
}
