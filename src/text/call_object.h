// One call of a tool as JSON, read byte by byte while a model writes it: its name as soon as that is there,
// its arguments piece by piece.
#pragma once

#include <string>
#include <string_view>

namespace coppice::core {

class CallObject {
 public:
  // `name`: it is known already, and the object is the arguments themselves.
  explicit CallObject(std::string name = "");

  enum class State { open, done, wrong };
  // The object's next byte; at first '{'.
  State push(char c);

  bool named() const { return !name_.empty(); }
  const std::string& name() const { return name_; }
  // JSON text as the model wrote it, as far as it has come. {} if an object is done and had none.
  const std::string& arguments() const { return arguments_; }
  const std::string& raw() const { return raw_; }  // all bytes

 private:
  enum class Where { start, key, in_key, colon, value, end };

  State push_key(char c);
  State push_value(char c);
  bool value_ends_before(char c) const;
  bool value_ended(char c);
  void take_value();
  void take_function();

  Where where_ = Where::start;
  bool whole_;  // the object is the arguments
  std::string name_, arguments_, raw_, key_, value_;
  int depth_ = 0;
  bool in_string_ = false, escaped_ = false;
};

}  // namespace coppice::core
