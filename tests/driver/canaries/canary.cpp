#include "tests/driver/canaries/canary.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>

namespace reprise::driver::test {
namespace {

constexpr int kItems = 16;

std::vector<int> ascending() {
  std::vector<int> order(kItems);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

/// An item in a block of memory of its own.
struct Item {
  int number = 0;
};

std::vector<std::unique_ptr<Item>> items() {
  std::vector<std::unique_ptr<Item>> all;
  for (const int number : ascending()) all.push_back(std::make_unique<Item>(Item{number}));
  return all;
}

std::vector<int> by_address() {
  auto all = items();
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a < b; });
  std::vector<int> order;
  for (const auto& item : all) order.push_back(item->number);
  return order;
}

std::vector<int> by_hash() {
  const auto all = items();
  std::unordered_map<const Item*, int> numbers;
  for (const auto& item : all) numbers[item.get()] = item->number;
  std::vector<int> order;
  for (const auto& [item, number] : numbers) order.push_back(number);
  return order;
}

std::vector<int> rotated_by(std::uint64_t places) {
  auto order = ascending();
  std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(places % kItems),
              order.end());
  return order;
}

std::vector<int> by_time() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  return rotated_by(static_cast<std::uint64_t>(now) / 64);
}

std::vector<int> by_what_memory_holds() {
  constexpr std::size_t kBytes = 200;
  const std::unique_ptr<void, decltype(&std::free)> block(std::malloc(kBytes), &std::free);
  // The bytes are read through volatile, because a compiler may drop a read of unwritten memory.
  const auto* bytes = static_cast<const volatile unsigned char*>(block.get());
  std::uint64_t sum = 0;
  for (std::size_t i = kBytes / 2; i < kBytes; ++i) sum = sum * 31 + bytes[i];
  return rotated_by(sum % 1021);
}

/// The threads' turns differ between runs, and so do the times that they wait for each other: on
/// one busy core the turns alone may not.
std::vector<int> by_thread() {
  std::vector<int> order;
  std::mutex mutex;
  std::atomic<int> waiting = kItems / 4;
  std::atomic<std::uint64_t> looks = 0;
  std::vector<std::thread> threads;
  for (int first = 0; first < kItems; first += 4) {
    threads.emplace_back([&, first] {
      std::uint64_t own = 0;
      for (--waiting; waiting > 0; ++own) {
      }
      looks += own;
      for (int number = first; number < first + 4; ++number) {
        {
          const std::lock_guard lock(mutex);
          order.push_back(number);
        }
        std::this_thread::yield();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(looks % kItems),
              order.end());
  return order;
}

class CanaryDevice final : public Device {
 public:
  CanaryDevice(const Ports& ports, std::string canary)
      : inner_(ports.device), trace_(ports.trace), canary_(std::move(canary)) {}

  std::string name() const override { return inner_.name(); }
  DeviceEvent gather(std::span<const GatherCopy> copies) override {
    for (const int number : order_by(canary_)) {
      trace_.event({.phase = "canary", .detail = "item", .items = static_cast<unsigned>(number)});
    }
    return inner_.gather(copies);
  }
  DeviceEvent scatter(std::span<const ScatterCopy> copies) override {
    return inner_.scatter(copies);
  }
  void wait(DeviceEvent event) override { inner_.wait(event); }
  bool host_memory() const override { return inner_.host_memory(); }
  StagingMemory staging(std::size_t bytes) override { return inner_.staging(bytes); }
  std::uint64_t batch_bytes() const override { return inner_.batch_bytes(); }

 private:
  Device& inner_;
  Trace& trace_;
  std::string canary_;
};

}  // namespace

std::vector<int> order_by(std::string_view canary) {
  if (canary == "address-order") return by_address();
  if (canary == "time") return by_time();
  if (canary == "uninitialised-memory") return by_what_memory_holds();
  if (canary == "hash-order") return by_hash();
  if (canary == "threads") return by_thread();
  return ascending();
}

MemoryOf memory_with(std::string_view canary) {
  const auto devices = std::make_shared<std::vector<std::unique_ptr<CanaryDevice>>>();
  return [devices, name = std::string(canary)](const RankSeat& seat) {
    devices->push_back(std::make_unique<CanaryDevice>(seat.ports, name));
    return RankMemory{sim::host_processor(), *devices->back()};
  };
}

}  // namespace reprise::driver::test
