// Messages as lines of a trace.
#pragma once

#include <string>

#include "src/model/lease.h"
#include "src/model/register.h"

namespace weir::sim {

std::string say(const RegisterMessage& message);
std::string say(const LeaseRequest& request);
std::string say(const LeaseAnswer& answer);

}  // namespace weir::sim
