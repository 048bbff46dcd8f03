#include "device.h"

#include "hip_standin.h"

#include <cstdlib>
#include <mutex>
#include <sstream>
#include <vector>

namespace hip_standin {
namespace {

constexpr char default_arch[] = "gfx90a:sramecc+:xnack-";

int hex_digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 0;
}

Device make_device(const std::string &arch, int compute_units) {
    Device device;
    device.arch = arch;
    const std::string name = arch.substr(0, arch.find(':'));
    // gfx, the major version in decimal, a digit minor, a digit stepping: gfx90a, gfx1100.
    if (name.size() >= 6) {
        device.major = std::atoi(name.substr(3, name.size() - 5).c_str());
        device.minor = hex_digit(name[name.size() - 2]);
    }
    if (device.major >= 10)
        device.warp_size = 32;
    if (name == "gfx950")
        device.shared_bytes_per_block = 160 * 1024;

    if (compute_units > 0)
        device.compute_units = compute_units;
    else if (name == "gfx90a")
        device.compute_units = 104; // one die of an MI250X
    else if (name == "gfx942")
        device.compute_units = 304; // MI300X
    else if (name == "gfx950")
        device.compute_units = 256; // MI355X
    else
        device.compute_units = 96;
    return device;
}

class Devices {
  public:
    Devices() {
        if (const char *count = std::getenv("HIP_STANDIN_COMPUTE_UNITS"))
            compute_units_ = std::atoi(count);
        const char *arch = std::getenv("HIP_STANDIN_ARCH");
        arch_list_ = arch && *arch ? arch : default_arch;
        rebuild();
    }

    void set_arch_list(const std::string &list) {
        const std::lock_guard<std::mutex> lock(mutex_);
        arch_list_ = list.empty() ? default_arch : list;
        rebuild();
    }

    void set_compute_units(int count) {
        const std::lock_guard<std::mutex> lock(mutex_);
        compute_units_ = count;
        rebuild();
    }

    int count() {
        const std::lock_guard<std::mutex> lock(mutex_);
        return static_cast<int>(devices_.size());
    }

    Device get(int index) {
        const std::lock_guard<std::mutex> lock(mutex_);
        return devices_.at(static_cast<size_t>(index));
    }

  private:
    void rebuild() {
        devices_.clear();
        std::istringstream list(arch_list_);
        for (std::string arch; std::getline(list, arch, ',');)
            if (arch != "none")
                devices_.push_back(make_device(arch, compute_units_));
    }

    std::mutex mutex_;
    std::string arch_list_;
    int compute_units_ = 0;
    std::vector<Device> devices_;
};

// Never destroyed: libraries unregister their device code after main has returned.
Devices &devices() {
    static Devices &instance = *new Devices;
    return instance;
}

thread_local int current = 0;

} // namespace

int device_count() { return devices().count(); }

int current_device() { return current; }

bool set_current_device(int index) {
    if (index < 0 || index >= device_count())
        return false;
    current = index;
    return true;
}

Device device(int index) { return devices().get(index); }

void set_devices(const std::string &arch_list) { devices().set_arch_list(arch_list); }

void set_compute_units(int count) { devices().set_compute_units(count); }

} // namespace hip_standin

void hip_standin_set_arch(const char *arch) { hip_standin::set_devices(arch ? arch : ""); }

void hip_standin_set_compute_units(int count) { hip_standin::set_compute_units(count); }
