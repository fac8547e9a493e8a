// What a node answered, for commands that show it: its JSON, or the exit status and what was wrong.
// One thread.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "src/base/result.h"
#include "src/cli/client.h"
#include "src/cli/commands.h"

namespace weir::cli {

/// Says what is wrong with a flag and gives the exit status.
int wrong_usage(Console console, const Error& error);

struct Answer {
  int status = 0;
  std::string body;
  boost::json::object object;
};

/// A reply that is a JSON object, or the exit status after saying what is wrong.
std::optional<Answer> expect_object(Result<Reply> reply, const Endpoint& endpoint, Console console,
                                    int& exit_status);

/// Members of an answer, with a default where it has none: what an older or newer node sends must
/// not break a table.
std::string text_of(const boost::json::object& object, const char* name, std::string absent = "-");
std::int64_t number_of(const boost::json::object& object, const char* name,
                       std::int64_t absent = 0);
bool flag_of(const boost::json::object& object, const char* name);
const boost::json::array& array_of(const boost::json::object& object, const char* name);
const boost::json::object& object_of(const boost::json::object& object, const char* name);

}  // namespace weir::cli
