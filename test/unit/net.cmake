weir_test(NAME net_test LABEL unit DEPS net codec LIBS Boost::json
  SOURCES net_check_test.cc net_headers_test.cc net_server_test.cc net_session_test.cc
)
