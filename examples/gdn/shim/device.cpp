#include "device.hpp"

#include <map>
#include <mutex>

#include "flat_kernel.hpp"

namespace atlas_gdn {
namespace {

bool ask(int device, DeviceInfo *info) {
    int major = 0, minor = 0;
    if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) != cudaSuccess ||
        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) != cudaSuccess ||
        cudaDeviceGetAttribute(&info->multiprocessors, cudaDevAttrMultiProcessorCount, device) != cudaSuccess)
        return false;
    info->hopper = major == 9 && minor == 0;
    if (!info->hopper)
        return true;
    // The attribute that prepare_flat sets belongs to the current device, so each device needs its own call.
    const DeviceGuard guard(device);
    return guard.ok() && prepare_flat() == cudaSuccess;
}

} // namespace

bool device_info(int device, DeviceInfo *info) {
    static std::mutex &lock = *new std::mutex;
    static auto &known = *new std::map<int, DeviceInfo>;
    const std::lock_guard<std::mutex> guard(lock);
    if (const auto found = known.find(device); found != known.end()) {
        *info = found->second;
        return true;
    }
    if (!ask(device, info))
        return false;
    known[device] = *info;
    return true;
}

} // namespace atlas_gdn
