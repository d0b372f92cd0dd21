#include "core/c/opened_device.hpp"

#include <dlfcn.h>

#include <cstring>
#include <new>
#include <optional>
#include <utility>

#include "core/c/device_table.hpp"
#include "core/c/structs.hpp"
#include "reprise/error.hpp"

namespace reprise::c {
namespace {

/// The loader puts the folder of the library that asks in the place of $ORIGIN.
constexpr const char* kBesideThis = "$ORIGIN/libreprise_c_cuda.so";

/// The failure of a call, reported from the other side.
struct ReportedFailure : FailureSink {
  ReportedFailure() : FailureSink{.tell = keep} {}

  static void keep(FailureSink* self, std::uint32_t code, const char* message) noexcept try {
    static_cast<ReportedFailure*>(self)->error.emplace(Code{code}, message);
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): the caller notices
  }

  std::optional<Error> error;
};

/// Calls a function of the table. Throws the failure that it tells.
template <class... Parameters, class... Arguments>
void call(bool (*function)(Parameters...), Arguments... arguments) {
  ReportedFailure reported;
  if (function(arguments..., &reported)) return;
  if (reported.error) throw Error(*reported.error);
  throw std::bad_alloc();
}

class OpenedDevice final : public Device {
 public:
  OpenedDevice(const DeviceTable& table, void* device) : table_(table), device_(device) {}
  ~OpenedDevice() override { table_.close(device_); }
  OpenedDevice(const OpenedDevice&) = delete;
  OpenedDevice& operator=(const OpenedDevice&) = delete;

  std::string name() const override { return table_.name(device_); }
  std::uint64_t batch_bytes() const override { return table_.batch_bytes(device_); }

  DeviceEvent gather(std::span<const GatherCopy> copies) override {
    DeviceEvent event;
    call(table_.gather, device_, copies.data(), copies.size(), &event.id);
    return event;
  }
  DeviceEvent scatter(std::span<const ScatterCopy> copies) override {
    DeviceEvent event;
    call(table_.scatter, device_, copies.data(), copies.size(), &event.id);
    return event;
  }
  void wait(DeviceEvent event) override { call(table_.wait, device_, event.id); }
  void publish() override { call(table_.publish, device_); }
  void use_stream(void* stream) override { call(table_.use_stream, device_, stream); }
  void reserve(std::size_t bytes) override { call(table_.reserve, device_, bytes); }
  bool reaches(const std::byte* address) const override {
    bool reached = false;
    call(table_.reaches, device_, address, &reached);
    return reached;
  }
  StagingMemory staging(std::size_t bytes) override {
    std::byte* first = nullptr;
    void* owner = nullptr;
    call(table_.staging, device_, bytes, &first, &owner);
    return {first, [release = table_.release, owner](std::byte*) { release(owner); }};
  }

 private:
  const DeviceTable& table_;
  void* device_;
};

/// Returns the path of this library.
std::string own_path() {
  Dl_info info = {};
  return dladdr(kBesideThis, &info) != 0 ? info.dli_fname : "libreprise_c.so";
}

/// Opens the file. It stays open: threads and the driver may use it until the process ends.
const DeviceTable& opened_table(const std::string& file) {
  const char* const path = file.empty() ? kBesideThis : file.c_str();
  void* const object = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (object == nullptr) {
    const std::string why = dlerror();
    refuse(Code::kUnsupported, "the file with the code for CUDA can't be opened: " + why +
                                   ". Install a build that has libreprise_c_cuda.so beside " +
                                   own_path() + ", or put the tensors into memory of the CPU");
  }
  const auto table = reinterpret_cast<DeviceTableCall>(dlsym(object, kCudaTableName));
  if (table == nullptr) {
    refuse(Code::kUnsupported, "this is no file with the code for CUDA: " + std::string(path));
  }
  const DeviceTable& found = *table();
  if (found.struct_size != sizeof(DeviceTable) || found.copy_size != sizeof(GatherCopy) ||
      std::strcmp(found.version, REPRISE_VERSION) != 0) {
    refuse(Code::kUnsupported, std::string("the file with the code for CUDA is of another version "
                                           "than this library, which is ") +
                                   REPRISE_VERSION + ": " + path + ". Install both together");
  }
  return found;
}

}  // namespace

std::shared_ptr<Device> opened_cuda_device(const std::string& file, std::int32_t index,
                                           std::chrono::nanoseconds deadline) {
  const DeviceTable& table = opened_table(file);
  void* device = nullptr;
  call(table.open, index, std::int64_t{deadline.count()}, &device);
  return std::make_shared<OpenedDevice>(table, device);
}

}  // namespace reprise::c
