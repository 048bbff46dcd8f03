// SPDX-License-Identifier: MIT
//
// The HIP functions that CK's launch_kernel refers to. Only hipPeekAtLastError is called: nothing is timed by
// events.
#include <cstdlib>

extern "C" {
int hipPeekAtLastError() { return 0; }
int hipGetLastError() { return 0; }
#define NOT_CALLED(name)                                                                                     \
    void name() { std::abort(); }
NOT_CALLED(hipGetErrorString)
NOT_CALLED(hipEventCreate)
NOT_CALLED(hipEventDestroy)
NOT_CALLED(hipEventRecord)
NOT_CALLED(hipEventSynchronize)
NOT_CALLED(hipEventElapsedTime)
NOT_CALLED(hipDeviceSynchronize)
NOT_CALLED(hipStreamSynchronize)
NOT_CALLED(hipGetDevice)
NOT_CALLED(hipGetDevicePropertiesR0600)
NOT_CALLED(hipGetDeviceProperties)
NOT_CALLED(hipMalloc)
NOT_CALLED(hipFree)
NOT_CALLED(hipMemcpy)
NOT_CALLED(hipMemsetAsync)
NOT_CALLED(hipMemset)
NOT_CALLED(hipLaunchKernel)
NOT_CALLED(__hipPushCallConfiguration)
NOT_CALLED(__hipPopCallConfiguration)
NOT_CALLED(__hipRegisterFatBinary)
NOT_CALLED(__hipUnregisterFatBinary)
NOT_CALLED(__hipRegisterFunction)
NOT_CALLED(__hipRegisterVar)
}
