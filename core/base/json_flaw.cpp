#include "core/base/json_flaw.hpp"

#include <nlohmann/json.hpp>
#include <set>
#include <vector>

namespace reprise {
namespace {

using Json = nlohmann::json;

/// Looks for flaws while the parser runs. Each handler returns false to stop the parser.
class Watch final : public nlohmann::json_sax<Json> {
 public:
  explicit Watch(std::size_t depth_max) : depth_max_(depth_max) {}

  std::optional<JsonFlaw> flaw;

  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(number_integer_t /*value*/) override { return true; }
  bool number_unsigned(number_unsigned_t /*value*/) override { return true; }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override { return true; }
  bool string(string_t& /*value*/) override { return true; }
  bool binary(binary_t& /*value*/) override { return true; }
  bool start_object(std::size_t /*elements*/) override { return open(); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t /*elements*/) override { return open(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    if (!keys_.back().insert(name).second) flaw = {JsonFlaw::Kind::kRepeatedKey, name};
    return !flaw;
  }
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    return false;
  }

 private:
  bool open() {
    keys_.emplace_back();
    if (keys_.size() > depth_max_) flaw = {JsonFlaw::Kind::kTooDeep, {}};
    return !flaw;
  }
  bool close() {
    keys_.pop_back();
    return true;
  }

  std::size_t depth_max_;
  /// Keys seen so far in each object or list that is still open.
  std::vector<std::set<std::string>> keys_;
};

}  // namespace

std::optional<JsonFlaw> json_flaw(std::string_view text, std::size_t depth_max) {
  Watch watch(depth_max);
  Json::sax_parse(text, &watch);
  return watch.flaw;
}

}  // namespace reprise
