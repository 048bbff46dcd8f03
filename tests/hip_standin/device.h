#pragma once

#include <string>

namespace hip_standin {

struct Device {
    std::string arch; // gcnArchName
    int major = 0;
    int minor = 0;
    int compute_units = 0;
    int warp_size = 64;
    int shared_bytes_per_block = 64 * 1024;
};

// The calling thread's current device, and how many there are.
int device_count();
int current_device();
bool set_current_device(int index);

// A copy, because the tests change devices while other threads read them. The index must be below
// device_count().
Device device(int index);

void set_devices(const std::string &arch_list);
void set_compute_units(int count);

} // namespace hip_standin
