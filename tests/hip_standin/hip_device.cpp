// Devices: how many, which, and what they are.
#include "device.h"
#include "hip_api.h"
#include "stream.h"

#include <cstring>

// hip_deprecated.h's struct of HIP 5, under the name that HIP 6 and later give it.
#include <hip/hip_deprecated.h>

using hip_standin::Device;
using hip_standin::hip_call;

namespace {

constexpr size_t device_memory_bytes = size_t{64} << 30;
constexpr int max_block_threads = 1024;

// What both generations of the struct have.
template <typename Properties> void fill_common(Properties &properties, const Device &device) {
    std::memset(&properties, 0, sizeof properties);
    std::snprintf(properties.name, sizeof properties.name, "stand-in for %s", device.arch.c_str());
    std::snprintf(properties.gcnArchName, sizeof properties.gcnArchName, "%s", device.arch.c_str());
    properties.totalGlobalMem = device_memory_bytes;
    properties.sharedMemPerBlock = static_cast<size_t>(device.shared_bytes_per_block);
    properties.maxSharedMemoryPerMultiProcessor = static_cast<size_t>(device.shared_bytes_per_block);
    properties.regsPerBlock = 65536;
    properties.warpSize = device.warp_size;
    properties.maxThreadsPerBlock = max_block_threads;
    for (int &dimension : properties.maxThreadsDim)
        dimension = max_block_threads;
    properties.maxGridSize[0] = 2147483647;
    properties.maxGridSize[1] = properties.maxGridSize[2] = 65536;
    properties.clockRate = 1700000;
    properties.memoryClockRate = 1600000;
    properties.memoryBusWidth = 4096;
    properties.totalConstMem = 2147483647;
    properties.major = device.major;
    properties.minor = device.minor;
    properties.multiProcessorCount = device.compute_units;
    properties.l2CacheSize = 8 << 20;
    properties.maxThreadsPerMultiProcessor = 2048;
    properties.concurrentKernels = 1;
    properties.canMapHostMemory = 1;
    properties.cooperativeLaunch = 1;
    properties.managedMemory = 1;
    properties.clockInstructionRate = 100000;
}

template <typename Properties>
hipError_t get_properties(const char *function, Properties *properties, int index) {
    return hip_call(function, [&] {
        if (!properties)
            return hipErrorInvalidValue;
        if (index < 0 || index >= hip_standin::device_count())
            return hipErrorInvalidDevice;
        fill_common(*properties, hip_standin::device(index));
        return hipSuccess;
    });
}

} // namespace

extern "C" {

hipError_t hipInit(unsigned flags) {
    return hip_call("hipInit", [&] {
        if (flags != 0)
            return hipErrorInvalidValue;
        return hip_standin::device_count() ? hipSuccess : hipErrorNoDevice;
    });
}

hipError_t hipRuntimeGetVersion(int *version) {
    return hip_call("hipRuntimeGetVersion", [&] {
        if (!version)
            return hipErrorInvalidValue;
        *version = HIP_VERSION;
        return hipSuccess;
    });
}

hipError_t hipDriverGetVersion(int *version) { return hipRuntimeGetVersion(version); }

hipError_t hipGetDeviceCount(int *count) {
    return hip_call("hipGetDeviceCount", [&] {
        if (!count)
            return hipErrorInvalidValue;
        *count = hip_standin::device_count();
        return *count ? hipSuccess : hipErrorNoDevice;
    });
}

hipError_t hipGetDevice(int *index) {
    return hip_call("hipGetDevice", [&] {
        if (!index)
            return hipErrorInvalidValue;
        if (!hip_standin::device_count())
            return hipErrorNoDevice;
        *index = hip_standin::current_device();
        return hipSuccess;
    });
}

hipError_t hipSetDevice(int index) {
    return hip_call("hipSetDevice", [&] {
        if (!hip_standin::device_count())
            return hipErrorNoDevice;
        return hip_standin::set_current_device(index) ? hipSuccess : hipErrorInvalidDevice;
    });
}

hipError_t hipDeviceGet(hipDevice_t *handle, int index) {
    return hip_call("hipDeviceGet", [&] {
        if (!handle)
            return hipErrorInvalidValue;
        if (index < 0 || index >= hip_standin::device_count())
            return hipErrorInvalidDevice;
        *handle = index;
        return hipSuccess;
    });
}

hipError_t hipDeviceGetName(char *name, int size, hipDevice_t index) {
    return hip_call("hipDeviceGetName", [&] {
        if (!name || size <= 0)
            return hipErrorInvalidValue;
        if (index < 0 || index >= hip_standin::device_count())
            return hipErrorInvalidDevice;
        std::snprintf(name, static_cast<size_t>(size), "stand-in for %s",
                      hip_standin::device(index).arch.c_str());
        return hipSuccess;
    });
}

hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_tR0600 *properties, int index) {
    const hipError_t error = get_properties("hipGetDeviceProperties", properties, index);
    if (error != hipSuccess)
        return error;
    properties->sharedMemPerMultiprocessor = properties->sharedMemPerBlock;
    properties->sharedMemPerBlockOptin = properties->sharedMemPerBlock;
    properties->regsPerMultiprocessor = properties->regsPerBlock;
    properties->maxBlocksPerMultiProcessor = properties->maxThreadsPerMultiProcessor / properties->warpSize;
    properties->asyncEngineCount = 1;
    properties->streamPrioritiesSupported = 1;
    properties->memoryPoolsSupported = 1;
    return hipSuccess;
}

hipError_t hipGetDevicePropertiesR0000(hipDeviceProp_tR0000 *properties, int index) {
    return get_properties("hipGetDevicePropertiesR0000", properties, index);
}

hipError_t hipDeviceGetAttribute(int *value, hipDeviceAttribute_t attribute, int index) {
    return hip_call("hipDeviceGetAttribute", [&] {
        if (!value)
            return hipErrorInvalidValue;
        hipDeviceProp_tR0600 properties;
        if (const hipError_t error = hipGetDevicePropertiesR0600(&properties, index); error != hipSuccess)
            return error;
        switch (attribute) {
        case hipDeviceAttributeComputeCapabilityMajor:
            *value = properties.major;
            break;
        case hipDeviceAttributeComputeCapabilityMinor:
            *value = properties.minor;
            break;
        case hipDeviceAttributeMultiprocessorCount:
        case hipDeviceAttributePhysicalMultiProcessorCount:
            *value = properties.multiProcessorCount;
            break;
        case hipDeviceAttributeWarpSize:
            *value = properties.warpSize;
            break;
        case hipDeviceAttributeMaxThreadsPerBlock:
        case hipDeviceAttributeMaxBlockDimX:
        case hipDeviceAttributeMaxBlockDimY:
        case hipDeviceAttributeMaxBlockDimZ:
            *value = properties.maxThreadsPerBlock;
            break;
        case hipDeviceAttributeMaxGridDimX:
            *value = properties.maxGridSize[0];
            break;
        case hipDeviceAttributeMaxGridDimY:
            *value = properties.maxGridSize[1];
            break;
        case hipDeviceAttributeMaxGridDimZ:
            *value = properties.maxGridSize[2];
            break;
        case hipDeviceAttributeMaxThreadsPerMultiProcessor:
            *value = properties.maxThreadsPerMultiProcessor;
            break;
        case hipDeviceAttributeMaxSharedMemoryPerBlock:
        case hipDeviceAttributeSharedMemPerBlockOptin:
        case hipDeviceAttributeSharedMemPerMultiprocessor:
        case hipDeviceAttributeMaxSharedMemoryPerMultiprocessor:
            *value = static_cast<int>(properties.sharedMemPerBlock);
            break;
        case hipDeviceAttributeMaxRegistersPerBlock:
        case hipDeviceAttributeMaxRegistersPerMultiprocessor:
            *value = properties.regsPerBlock;
            break;
        case hipDeviceAttributeClockRate:
            *value = properties.clockRate;
            break;
        case hipDeviceAttributeL2CacheSize:
            *value = properties.l2CacheSize;
            break;
        case hipDeviceAttributeCooperativeLaunch:
        case hipDeviceAttributeManagedMemory:
        case hipDeviceAttributeMemoryPoolsSupported:
            *value = 1;
            break;
        default:
            return hipErrorNotSupported;
        }
        return hipSuccess;
    });
}

hipError_t hipDeviceSynchronize() {
    return hip_call("hipDeviceSynchronize", [&] {
        if (!hip_standin::device_count())
            return hipErrorNoDevice;
        hip_standin::wait_for_device(hip_standin::current_device());
        return hipSuccess;
    });
}

hipError_t hipDeviceGetStreamPriorityRange(int *least, int *greatest) {
    return hip_call("hipDeviceGetStreamPriorityRange", [&] {
        if (least)
            *least = 1;
        if (greatest)
            *greatest = -1;
        return hipSuccess;
    });
}
}
