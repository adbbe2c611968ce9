// The conformance suite cannot send a bearer token by itself: every request that it makes gets ours.
import http from "node:http";
import { createRequire } from "node:module";

const ours = { authorization: `Bearer ${process.env.CONFORMANCE_TOKEN}` };

const plain = globalThis.fetch;
globalThis.fetch = (input, init = {}) => {
  const headers = new Headers(init.headers ?? (input instanceof Request ? input.headers : undefined));
  headers.set("authorization", ours.authorization);
  return plain(input, { ...init, headers });
};

const request = http.request;
http.request = (...given) => {
  const made = request(...given);
  made.setHeader("authorization", ours.authorization);
  return made;
};

const undici = createRequire(process.env.CONFORMANCE_MAIN)("undici");
undici.setGlobalDispatcher(
  undici.getGlobalDispatcher().compose((dispatch) => (options, handler) => {
    const headers = Array.isArray(options.headers)
      ? [...options.headers, "authorization", ours.authorization]
      : { ...options.headers, ...ours };
    return dispatch({ ...options, headers }, handler);
  }),
);
