#include <chrono>
#include <memory>
#include <utility>

#include "core/adapters/posix/host_device.hpp"
#include "core/api/calls.hpp"
#include "core/c/callback_fabric.hpp"
#include "core/c/handles.hpp"
#include "core/c/last_error.hpp"
#include "core/c/opened_device.hpp"
#include "reprise/socket.hpp"

namespace reprise::c {
namespace {

/// Returns a span in nanoseconds, or `otherwise` for 0.
std::chrono::nanoseconds span_or(std::int64_t ns, std::chrono::nanoseconds otherwise,
                                 const char* what) {
  if (ns < 0) refuse(Code::kUsage, std::string(what) + ": it is negative");
  return ns == 0 ? otherwise : std::chrono::nanoseconds(ns);
}

/// Returns a device by its number in the C interface.
std::shared_ptr<Device> device_numbered(std::int32_t number, const DeviceChoice& choice) {
  if (number < 0) refuse(Code::kUsage, "device: " + std::to_string(number) + " is none");
  if (number == 0) return std::make_shared<HostDevice>("host", 0);
  return opened_cuda_device(choice.cuda_file, number - 1, choice.deadline);
}

JobOptions job_options_of(const rp_job_options& given) {
  JobOptions options;
  options.deadline = span_or(given.deadline_ns, options.deadline, "deadline_ns");
  options.threads = given.threads;
  if (given.interrupted != nullptr) {
    options.interrupted = [given] { return given.interrupted(given.context) != 0; };
  }
  return options;
}

KeyStore key_store_of(const rp_job_options& given) {
  KeyStore store;
  if (given.put != nullptr) {
    store.put = [given](const std::string& key, const std::string& value) {
      if (given.put(given.context, key.c_str(), value.c_str()) == 0) return;
      refuse(Code::kPeerFailed, "the callback put failed for the key '" + key + "'");
    };
  }
  if (given.get != nullptr) {
    store.get = [given](const std::string& key) -> std::optional<std::string> {
      const char* value = nullptr;
      if (given.get(given.context, key.c_str(), &value) != 0) {
        refuse(Code::kPeerFailed, "the callback get failed for the key '" + key + "'");
      }
      return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
    };
  }
  return store;
}

SocketOptions socket_options_of(const rp_job_options& given) {
  SocketOptions options{.rank = given.rank,
                        .size = given.size,
                        .address = text_or(given.address, ""),
                        .store = key_store_of(given)};
  options.job = text_or(given.job_name, options.job.c_str());
  options.bind = text_or(given.bind, options.bind.c_str());
  options.deadline = span_or(given.meet_deadline_ns, options.deadline, "meet_deadline_ns");
  return options;
}

/// Returns what the devices of a job need. The other ranks are to hear that a device did not
/// answer, so its deadline comes before the job's.
DeviceChoice device_choice_of(const rp_job_options& given) {
  return {.cuda_file = text_or(given.cuda_library, ""),
          .deadline = job_options_of(given).deadline / 2};
}

Job opened(rp_job_options given) {
  const std::string root = required(given.root, "root");
  if (given.size == 0) given.size = 1;
  JobOptions options = job_options_of(given);
  options.device = device_numbered(given.device, device_choice_of(given));
  switch (given.fabric) {
    case RP_ALONE:
      if (given.size != 1) refuse(Code::kUsage, "size: several ranks need a fabric");
      return local_job(root, options);
    case RP_CALLBACKS: {
      JobPorts ports = local_ports(root, options);
      ports.fabric = std::make_shared<CallbackFabric>(given);
      return Job(std::move(ports));
    }
    case RP_SOCKETS:
      return socket_job(root, socket_options_of(given), options);
    default:
      refuse(Code::kUsage, "fabric: " + std::to_string(given.fabric) + " is none");
  }
}

}  // namespace
}  // namespace reprise::c

std::int32_t rp_abi_version(void) { return RP_ABI_VERSION; }

const char* rp_version(void) { return REPRISE_VERSION; }

std::int32_t rp_job_open(const rp_job_options* options, rp_job** job) {
  using namespace reprise::c;
  return guarded([&] {
    require(job, "job");
    *job = nullptr;
    const rp_job_options given = taken(options, "options");
    *job = std::make_unique<rp_job>(opened(given), device_choice_of(given)).release();
  });
}

std::int32_t rp_job_use_device(rp_job* job, std::int32_t device) {
  using namespace reprise::c;
  return guarded([&] {
    rp_job& ours = own(job, "job");
    ours.job = with_device(ours.job, device_numbered(device, ours.devices));
  });
}

void rp_job_free(rp_job* job) { reprise::c::free_own(job); }
