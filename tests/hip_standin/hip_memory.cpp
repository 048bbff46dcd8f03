// Memory. All of it is the host's: kernels do not run here, but copies and fills do, in stream order.
#include "device.h"
#include "hip_api.h"
#include "stream.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

using hip_standin::hip_call;
using hip_standin::RunOn;

namespace {

constexpr size_t device_memory_bytes = size_t{64} << 30;

struct Allocation {
    size_t size = 0;
    hipMemoryType type = hipMemoryTypeDevice;
    int device = 0;
};

struct Allocations {
    std::mutex mutex;
    std::map<uintptr_t, Allocation> by_address;
    size_t device_bytes = 0;
};

// Never destroyed: memory is freed from other libraries' destructors.
Allocations &allocations() {
    static Allocations &instance = *new Allocations;
    return instance;
}

hipError_t allocate(void **pointer, size_t size, hipMemoryType type) {
    if (!pointer)
        return hipErrorInvalidValue;
    *pointer = nullptr;
    if (!hip_standin::device_count())
        return hipErrorNoDevice;
    if (size == 0)
        return hipSuccess;
    Allocations &all = allocations();
    const std::lock_guard<std::mutex> lock(all.mutex);
    const bool on_device = type == hipMemoryTypeDevice;
    if (on_device && size > device_memory_bytes - all.device_bytes)
        return hipErrorOutOfMemory;
    void *memory = nullptr;
    if (posix_memalign(&memory, 4096, size) != 0)
        return hipErrorOutOfMemory;
    all.by_address[reinterpret_cast<uintptr_t>(memory)] = {size, type, hip_standin::current_device()};
    if (on_device)
        all.device_bytes += size;
    *pointer = memory;
    return hipSuccess;
}

hipError_t release(void *pointer) {
    if (!pointer)
        return hipSuccess;
    {
        Allocations &all = allocations();
        const std::lock_guard<std::mutex> lock(all.mutex);
        const auto found = all.by_address.find(reinterpret_cast<uintptr_t>(pointer));
        if (found == all.by_address.end())
            return hipErrorInvalidValue;
        if (found->second.type == hipMemoryTypeDevice)
            all.device_bytes -= found->second.size;
        all.by_address.erase(found);
    }
    std::free(pointer);
    return hipSuccess;
}

// hipFree and hipHostFree wait for the device: work that is still queued may use the memory.
hipError_t synchronize_and_release(void *pointer) {
    if (pointer)
        hip_standin::wait_for_device(hip_standin::current_device());
    return release(pointer);
}

template <typename Run> hipError_t in_stream(hipStream_t handle, bool wait, Run run) {
    if (!hip_standin::device_count())
        return hipErrorNoDevice;
    const auto stream = hip_standin::find_stream(handle);
    if (!stream)
        return hipErrorInvalidHandle;
    const auto point = hip_standin::submit(stream, RunOn::caller_if_idle, run);
    if (wait)
        hip_standin::wait_for(point);
    return hipSuccess;
}

hipError_t copy(void *to, const void *from, size_t size, hipMemcpyKind kind, hipStream_t stream, bool wait) {
    if (kind < hipMemcpyHostToHost || (kind > hipMemcpyDefault && kind != hipMemcpyDeviceToDeviceNoCU))
        return hipErrorInvalidMemcpyDirection;
    if (size == 0)
        return hipSuccess;
    if (!to || !from)
        return hipErrorInvalidValue;
    return in_stream(stream, wait, [=] { std::memmove(to, from, size); });
}

template <typename Value>
hipError_t fill(void *to, Value value, size_t count, hipStream_t stream, bool wait) {
    if (count == 0)
        return hipSuccess;
    if (!to)
        return hipErrorInvalidValue;
    return in_stream(stream, wait, [=] {
        for (size_t i = 0; i < count; ++i)
            std::memcpy(static_cast<char *>(to) + i * sizeof value, &value, sizeof value);
    });
}

} // namespace

extern "C" {

hipError_t hipMalloc(void **pointer, size_t size) {
    return hip_call("hipMalloc", [&] { return allocate(pointer, size, hipMemoryTypeDevice); });
}

hipError_t hipExtMallocWithFlags(void **pointer, size_t size, unsigned) {
    return hip_call("hipExtMallocWithFlags", [&] { return allocate(pointer, size, hipMemoryTypeDevice); });
}

hipError_t hipMallocManaged(void **pointer, size_t size, unsigned) {
    return hip_call("hipMallocManaged", [&] { return allocate(pointer, size, hipMemoryTypeManaged); });
}

hipError_t hipMallocAsync(void **pointer, size_t size, hipStream_t stream) {
    return hip_call("hipMallocAsync", [&] {
        if (!hip_standin::find_stream(stream))
            return hipErrorInvalidHandle;
        return allocate(pointer, size, hipMemoryTypeDevice);
    });
}

hipError_t hipHostMalloc(void **pointer, size_t size, unsigned) {
    return hip_call("hipHostMalloc", [&] { return allocate(pointer, size, hipMemoryTypeHost); });
}

hipError_t hipHostAlloc(void **pointer, size_t size, unsigned) {
    return hip_call("hipHostAlloc", [&] { return allocate(pointer, size, hipMemoryTypeHost); });
}

hipError_t hipMallocHost(void **pointer, size_t size) {
    return hip_call("hipMallocHost", [&] { return allocate(pointer, size, hipMemoryTypeHost); });
}

hipError_t hipHostGetDevicePointer(void **device_pointer, void *host_pointer, unsigned) {
    return hip_call("hipHostGetDevicePointer", [&] {
        if (!device_pointer || !host_pointer)
            return hipErrorInvalidValue;
        *device_pointer = host_pointer;
        return hipSuccess;
    });
}

hipError_t hipFree(void *pointer) {
    return hip_call("hipFree", [&] { return synchronize_and_release(pointer); });
}

hipError_t hipHostFree(void *pointer) {
    return hip_call("hipHostFree", [&] { return synchronize_and_release(pointer); });
}

hipError_t hipFreeHost(void *pointer) {
    return hip_call("hipFreeHost", [&] { return synchronize_and_release(pointer); });
}

hipError_t hipFreeAsync(void *pointer, hipStream_t stream) {
    return hip_call("hipFreeAsync",
                    [&] { return in_stream(stream, false, [=] { (void)release(pointer); }); });
}

hipError_t hipMemcpy(void *to, const void *from, size_t size, hipMemcpyKind kind) {
    return hip_call("hipMemcpy", [&] { return copy(to, from, size, kind, nullptr, true); });
}

hipError_t hipMemcpyAsync(void *to, const void *from, size_t size, hipMemcpyKind kind, hipStream_t stream) {
    return hip_call("hipMemcpyAsync", [&] { return copy(to, from, size, kind, stream, false); });
}

hipError_t hipMemcpyWithStream(void *to, const void *from, size_t size, hipMemcpyKind kind,
                               hipStream_t stream) {
    return hip_call("hipMemcpyWithStream", [&] { return copy(to, from, size, kind, stream, true); });
}

hipError_t hipMemcpyDtoH(void *to, hipDeviceptr_t from, size_t size) {
    return hip_call("hipMemcpyDtoH",
                    [&] { return copy(to, from, size, hipMemcpyDeviceToHost, nullptr, true); });
}

hipError_t hipMemcpyHtoD(hipDeviceptr_t to, const void *from, size_t size) {
    return hip_call("hipMemcpyHtoD",
                    [&] { return copy(to, from, size, hipMemcpyHostToDevice, nullptr, true); });
}

hipError_t hipMemset(void *to, int value, size_t size) {
    return hip_call("hipMemset", [&] { return fill(to, static_cast<uint8_t>(value), size, nullptr, true); });
}

hipError_t hipMemsetAsync(void *to, int value, size_t size, hipStream_t stream) {
    return hip_call("hipMemsetAsync",
                    [&] { return fill(to, static_cast<uint8_t>(value), size, stream, false); });
}

hipError_t hipMemsetD8(hipDeviceptr_t to, unsigned char value, size_t count) {
    return hip_call("hipMemsetD8", [&] { return fill(to, value, count, nullptr, true); });
}

hipError_t hipMemsetD8Async(hipDeviceptr_t to, unsigned char value, size_t count, hipStream_t stream) {
    return hip_call("hipMemsetD8Async", [&] { return fill(to, value, count, stream, false); });
}

hipError_t hipMemsetD32(hipDeviceptr_t to, int value, size_t count) {
    return hip_call("hipMemsetD32", [&] { return fill(to, value, count, nullptr, true); });
}

hipError_t hipMemsetD32Async(hipDeviceptr_t to, int value, size_t count, hipStream_t stream) {
    return hip_call("hipMemsetD32Async", [&] { return fill(to, value, count, stream, false); });
}

hipError_t hipMemGetInfo(size_t *free_bytes, size_t *total_bytes) {
    return hip_call("hipMemGetInfo", [&] {
        if (!free_bytes || !total_bytes)
            return hipErrorInvalidValue;
        const std::lock_guard<std::mutex> lock(allocations().mutex);
        *total_bytes = device_memory_bytes;
        *free_bytes = device_memory_bytes - allocations().device_bytes;
        return hipSuccess;
    });
}

hipError_t hipPointerGetAttributes(hipPointerAttribute_t *attributes, const void *pointer) {
    return hip_call("hipPointerGetAttributes", [&] {
        if (!attributes)
            return hipErrorInvalidValue;
        *attributes = {};
        attributes->type = hipMemoryTypeUnregistered;
        attributes->device = -1;
        const auto address = reinterpret_cast<uintptr_t>(pointer);
        const std::lock_guard<std::mutex> lock(allocations().mutex);
        const auto &all = allocations().by_address;
        auto found = all.upper_bound(address);
        if (found == all.begin() || address - (--found)->first >= found->second.size)
            return hipSuccess;
        attributes->type = found->second.type;
        attributes->device = found->second.device;
        attributes->devicePointer = const_cast<void *>(pointer);
        attributes->hostPointer =
            found->second.type == hipMemoryTypeDevice ? nullptr : const_cast<void *>(pointer);
        attributes->isManaged = found->second.type == hipMemoryTypeManaged;
        return hipSuccess;
    });
}

// aiter asks only for the start of the allocation that a pointer is in.
hipError_t hipPointerGetAttribute(void *value, hipPointer_attribute attribute, hipDeviceptr_t pointer) {
    return hip_call("hipPointerGetAttribute", [&] {
        if (!value)
            return hipErrorInvalidValue;
        if (attribute != HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR)
            return hipErrorNotSupported;
        const auto address = reinterpret_cast<uintptr_t>(pointer);
        const std::lock_guard<std::mutex> lock(allocations().mutex);
        const auto &all = allocations().by_address;
        auto found = all.upper_bound(address);
        if (found == all.begin() || address - (--found)->first >= found->second.size)
            return hipErrorInvalidValue;
        *static_cast<uintptr_t *>(value) = found->first;
        return hipSuccess;
    });
}

// Other processes have no part in a stand-in's memory.
hipError_t hipIpcGetMemHandle(hipIpcMemHandle_t *, void *) {
    return hip_call("hipIpcGetMemHandle", [] { return hipErrorNotSupported; });
}

hipError_t hipIpcOpenMemHandle(void **, hipIpcMemHandle_t, unsigned) {
    return hip_call("hipIpcOpenMemHandle", [] { return hipErrorNotSupported; });
}

hipError_t hipIpcCloseMemHandle(void *) {
    return hip_call("hipIpcCloseMemHandle", [] { return hipErrorNotSupported; });
}
}
