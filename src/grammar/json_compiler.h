// A schema's translation into rules, one rule for each schema in it. For json_*.cc alone.
#pragma once

#include <coppice/error.h>

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "grammar/json_text.h"

namespace coppice::core::grammar {

class JsonCompiler {
 public:
  // The document outlives it.
  explicit JsonCompiler(const Json& document) : document_(document), json_(rules_) {}

  Result<RuleId> run();
  const RuleSet& rules() const { return rules_; }

 private:
  using Alternatives = std::vector<Json>;  // schemas without $ref, allOf, anyOf and oneOf; one must hold

  // No value; `why` is for the error, where nothing else of the schema at hand has one.
  ExpressionId impossible(std::string_view why);
  // A value that is valid under the schema: a call of its rule.
  Result<ExpressionId> value(const Json& schema, const std::string& where);
  Result<ExpressionId> body(const Json& schema, const std::string& where);
  // Without $ref, allOf, anyOf and oneOf.
  Result<ExpressionId> plain(const Json& schema, const std::string& where);
  Result<ExpressionId> of_type(const std::string& type, const Json& schema, const std::string& where);
  Result<ExpressionId> one_of(const Json& values, const Json& schema, const std::string& where);

  // json_combine.cc
  Result<const Json*> resolve(const Json& reference, const std::string& where) const;
  Result<ExpressionId> any_of(const Json& branches, const std::string& where);
  Result<Alternatives> alternatives(const Json& schema, const std::string& where, int depth);
  Result<Alternatives> any_alternative(const Json& branches, const std::string& where, int depth);
  Result<Alternatives> all_of_both(const Alternatives& a, const Alternatives& b, const std::string& where);

  // json_objects.cc
  struct Members;
  Result<ExpressionId> object(const Json& schema, const std::string& where);
  Result<Members> members_of(const Json& schema, const std::string& where);
  Status add_additional(const Json& schema, const std::string& where, Members& members);
  Status check_member_counts(const Json& schema, const std::string& where, const Members& members);
  Result<ExpressionId> pattern_members(const Json& schema, const std::string& where);
  ExpressionId in_order(const Members& members);
  Result<ExpressionId> array(const Json& schema, const std::string& where);

  // json_scalars.cc
  Result<ExpressionId> string(const Json& schema, const std::string& where);
  Result<ExpressionId> integer(const Json& schema, const std::string& where);
  Result<ExpressionId> number(const Json& schema, const std::string& where);

  const Json& document_;
  RuleSet rules_;
  JsonText json_;
  std::map<const Json*, RuleId> known_;
  std::deque<Json> merged_;  // schemas that were made here; they stay where they are
  RuleId rule_ = -1;         // of the schema at hand
  std::string unmergeable_;  // why the last two schemas had nothing in common
  int depth_ = 0;
  int combined_ = 0;  // schemas, so far
};

}  // namespace coppice::core::grammar
