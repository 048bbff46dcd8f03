// What the shim needs to know of a device, and the switch to it for the length of a call.
#pragma once

#include <cuda_runtime_api.h>

namespace atlas_gdn {

struct DeviceInfo {
    bool hopper = false;
    int multiprocessors = 0;
};

// Asked once for each device; false if the driver does not answer.
bool device_info(int device, DeviceInfo *info);

class DeviceGuard {
  public:
    explicit DeviceGuard(int device) {
        if (cudaGetDevice(&before_) == cudaSuccess && before_ != device)
            switched_ = cudaSetDevice(device) == cudaSuccess;
        ok_ = before_ == device || switched_;
    }
    ~DeviceGuard() {
        if (switched_)
            cudaSetDevice(before_);
    }
    DeviceGuard(const DeviceGuard &) = delete;
    DeviceGuard &operator=(const DeviceGuard &) = delete;
    bool ok() const { return ok_; }

  private:
    int before_ = -1;
    bool switched_ = false;
    bool ok_ = false;
};

} // namespace atlas_gdn
