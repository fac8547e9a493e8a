weir_test(NAME server_values_test LABEL unit
  SOURCES server_explain_test.cc server_policy_keeper_test.cc server_requirements_test.cc
    server_usage_test.cc
  DEPS server config policy regions LIBS Boost::json)
weir_test(NAME server_test LABEL unit
  SOURCES server_certificate_copy_test.cc server_security_test.cc server_server_test.cc
  DEPS server net store telemetry test_support LIBS Boost::json)
