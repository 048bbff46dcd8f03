#include "hip_api.h"

#include <utility>

namespace hip_standin {
namespace {

thread_local hipError_t last_error = hipSuccess;

struct ErrorText {
    hipError_t error;
    const char *name;
    const char *text;
};

// Those that this library returns.
constexpr ErrorText error_texts[] = {
    {hipSuccess, "hipSuccess", "no error"},
    {hipErrorInvalidValue, "hipErrorInvalidValue", "invalid argument"},
    {hipErrorOutOfMemory, "hipErrorOutOfMemory", "out of memory"},
    {hipErrorInvalidConfiguration, "hipErrorInvalidConfiguration", "invalid configuration argument"},
    {hipErrorInvalidDeviceFunction, "hipErrorInvalidDeviceFunction", "invalid device function"},
    {hipErrorNoDevice, "hipErrorNoDevice", "no ROCm-capable device is detected"},
    {hipErrorInvalidDevice, "hipErrorInvalidDevice", "invalid device ordinal"},
    {hipErrorInvalidImage, "hipErrorInvalidImage", "device kernel image is invalid"},
    {hipErrorNoBinaryForGpu, "hipErrorNoBinaryForGpu",
     "no kernel image is available for execution on the device"},
    {hipErrorFileNotFound, "hipErrorFileNotFound", "file not found"},
    {hipErrorInvalidHandle, "hipErrorInvalidHandle", "invalid resource handle"},
    {hipErrorNotFound, "hipErrorNotFound", "named symbol not found"},
    {hipErrorNotReady, "hipErrorNotReady", "device not ready"},
    {hipErrorNotSupported, "hipErrorNotSupported", "operation not supported"},
    {hipErrorMissingConfiguration, "hipErrorMissingConfiguration",
     "__global__ function call is not configured"},
    {hipErrorUnknown, "hipErrorUnknown", "unknown error"},
};

const ErrorText &text_of(hipError_t error) {
    for (const ErrorText &entry : error_texts)
        if (entry.error == error)
            return entry;
    return std::end(error_texts)[-1];
}

} // namespace

hipError_t remember(hipError_t error) {
    if (error != hipSuccess && error != hipErrorNotReady)
        last_error = error;
    return error;
}

} // namespace hip_standin

extern "C" {

hipError_t hipGetLastError() { return std::exchange(hip_standin::last_error, hipSuccess); }

hipError_t hipExtGetLastError() { return hipGetLastError(); }

hipError_t hipPeekAtLastError() { return hip_standin::last_error; }

const char *hipGetErrorName(hipError_t error) { return hip_standin::text_of(error).name; }

const char *hipGetErrorString(hipError_t error) { return hip_standin::text_of(error).text; }
}
