weir_test(NAME net_test LABEL unit DEPS net codec test_support LIBS Boost::json
  SOURCES net_bearer_test.cc net_check_test.cc net_headers_test.cc net_server_test.cc net_session_test.cc
    net_tls_test.cc
)
