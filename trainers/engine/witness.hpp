#pragma once
// Writes the witness of a C++ program for the scenario driver: see docs/trainers.md.

#include <openssl/sha.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <reprise/reprise.hpp>
#include <string>

using Json = nlohmann::json;

inline std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31U);
}

/// Returns the digest of `count` elements of `width` bytes each. The width is at most 8. The first
/// element has the index `first`.
inline std::string digest(const std::string& key, const std::string& dtype, std::int64_t first,
                          const void* elements, std::size_t count, std::size_t width) {
  const std::string name = key + '\0' + dtype;
  unsigned char hash[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(name.data()), name.size(), hash);
  std::uint64_t number = 0;
  std::memcpy(&number, hash, sizeof number);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, static_cast<const char*>(elements) + i * width, width);
    const auto index = static_cast<std::uint64_t>(first) + i;
    sum += mixed((number + index * 0xd1342543de82ef95ULL) ^ bits);
  }
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(sum));
  return text;
}

inline std::string hexadecimal(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%a", value);
  return text;
}

/// Reads the plan of this process, writes its witness file, and kills the process at the planned
/// point. Also records the phases of the engine, such as "save.write" and "load.read".
class Witness final : public reprise::Trace {
 public:
  Witness() : plan_(Json::parse(std::ifstream(given("REPRISE_PLAN")))) {
    const std::string name = "/life" + std::to_string(plan_["life"].get<int>()) + "-rank0";
    file_ = given("REPRISE_WITNESS") + name + ".jsonl";
    values_ = given("REPRISE_WITNESS") + name + "-values.jsonl";
    say({{"what", "start"},
         {"life", plan_["life"]},
         {"rank", 0},
         {"world", 1},
         {"layout", Json::parse(given("REPRISE_LAYOUT"))},
         {"seed", seed()}});
  }
  static std::string given(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  }
  static int seed() { return std::stoi(given("REPRISE_SEED")); }
  const Json& plan() const { return plan_; }
  std::string option(const char* name) const { return plan_["options"][name]; }

  void say(const Json& line) const { append(file_, line); }
  void step(std::int64_t step, double loss, std::int64_t sample) const {
    say({{"what", "step"}, {"step", step}, {"loss", hexadecimal(loss)}, {"samples", {sample}}});
  }
  void state(const std::string& when, std::int64_t step, const std::vector<Json>& tensors) const {
    say({{"what", "state"},
         {"when", when},
         {"step", step},
         {"tensors", tensors},
         {"objects", Json::array()}});
  }

  /// Sets the prefix for the names of phases that are written from now on. If the prefix is empty,
  /// no phases are written.
  void during(const std::string& operation) { operation_ = operation; }
  void event(const reprise::TraceEvent& event) override {
    if (operation_.empty() || !event.detail.empty()) return;
    phase(operation_ + "." + std::string(event.phase), event.moment == reprise::Moment::kBegin);
  }

  void phase(const std::string& name, bool begins) {
    say({{"what", "phase"}, {"name", name}, {"edge", begins ? "begin" : "end"}});
    const Json& kill = plan_["kill"];
    if (!begins || kill.is_null() || kill["phase"] != name) return;
    if (++begun_[name] == kill["occurrence"].get<int>()) std::raise(SIGKILL);
  }

  template <class Elements>
  Json tensor(const std::string& when, std::int64_t step, const std::string& key,
              const std::string& dtype, const Elements& elements) const {
    const std::size_t width = sizeof elements[0];
    const Json box = {{"at", {0}},
                      {"size", {elements.size()}},
                      {"digest", digest(key, dtype, 0, elements.data(), elements.size(), width)}};
    if (given("REPRISE_WITNESS_VALUES") == key) say_values(when, step, key, dtype, elements);
    return {{"key", key}, {"dtype", dtype}, {"shape", {elements.size()}}, {"boxes", {box}}};
  }

 private:
  template <class Elements>
  void say_values(const std::string& when, std::int64_t step, const std::string& key,
                  const std::string& dtype, const Elements& elements) const {
    Json bits = Json::array();
    for (const auto& element : elements) {
      std::uint64_t word = 0;
      std::memcpy(&word, &element, sizeof element);
      char text[17];
      std::snprintf(text, sizeof text, "%llx", static_cast<unsigned long long>(word));
      bits.push_back(text);
    }
    append(values_, {{"what", "values"},
                     {"when", when},
                     {"step", step},
                     {"key", key},
                     {"dtype", dtype},
                     {"at", {0}},
                     {"size", {elements.size()}},
                     {"bits", bits}});
  }

  static void append(const std::string& file, const Json& line) {
    std::ofstream(file, std::ios::app) << line.dump() + "\n";
  }

  Json plan_;
  std::string file_;
  std::string values_;
  std::string operation_;
  std::map<std::string, int> begun_;
};

/// Runs one life. If the plan begins with a load, performs the load first. Then performs the
/// actions of the plan.
template <class Program>
int carry_out() {
  const auto witness = std::make_shared<Witness>();
  Program program(witness);
  Json load = witness->plan()["load"];
  if (!load.is_null()) {
    load["do"] = "load";
    program.act(load);
  }
  for (const auto& action : witness->plan()["actions"]) program.act(action);
  program.tell("end");
  witness->say({{"what", "done"}});
  return 0;
}
