// What generated code asks of HIP, without HIP: which device is there. CK_TEST_DEVICE says.
#pragma once

#include <cstdio>
#include <cstdlib>

enum hipError_t { hipSuccess = 0 };

struct hipDeviceProp_t {
    char gcnArchName[256];
};

inline hipError_t hipGetDevice(int *device) {
    *device = 0;
    return hipSuccess;
}

inline hipError_t hipGetDeviceProperties(hipDeviceProp_t *properties, int) {
    const char *device = std::getenv("CK_TEST_DEVICE");
    std::snprintf(properties->gcnArchName, sizeof(properties->gcnArchName), "%s", device ? device : "gfx942");
    return hipSuccess;
}
