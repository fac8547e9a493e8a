weir_test(NAME telemetry_metrics_test LABEL unit SOURCES telemetry_metrics_test.cc DEPS telemetry)
weir_test(NAME telemetry_log_test LABEL unit SOURCES telemetry_log_test.cc DEPS telemetry
  LIBS Boost::json)
