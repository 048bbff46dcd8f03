// SPDX-License-Identifier: MIT
#pragma once

#include <hip/hip_runtime_api.h>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

inline void check(hipError_t status, const char *what) {
    if (status != hipSuccess)
        throw std::runtime_error(std::string(what) + ": " + hipGetErrorString(status));
}

// Device memory, all zeros at first.
class DeviceMemory {
  public:
    explicit DeviceMemory(std::size_t bytes) : bytes_(bytes) {
        check(hipMalloc(&pointer_, bytes), "hipMalloc");
        clear();
    }
    template <typename T>
    explicit DeviceMemory(const std::vector<T> &host) : DeviceMemory(host.size() * sizeof(T)) {
        check(hipMemcpy(pointer_, host.data(), bytes_, hipMemcpyHostToDevice), "hipMemcpy");
    }
    ~DeviceMemory() { static_cast<void>(hipFree(pointer_)); }
    DeviceMemory(const DeviceMemory &) = delete;
    DeviceMemory &operator=(const DeviceMemory &) = delete;

    void *get() const { return pointer_; }
    void clear() { check(hipMemset(pointer_, 0, bytes_), "hipMemset"); }

    template <typename T> std::vector<T> read() const {
        std::vector<T> host(bytes_ / sizeof(T));
        check(hipMemcpy(host.data(), pointer_, bytes_, hipMemcpyDeviceToHost), "hipMemcpy");
        return host;
    }

  private:
    void *pointer_ = nullptr;
    std::size_t bytes_;
};
