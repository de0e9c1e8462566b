-- The requests of one case, and one line of figures at the end.
-- Arguments: get | post | fresh | replay, a nonce of this run, and how many keys are replayed.

local body = '{"amount":1250,"currency":"eur","to":"acct_1MmlLrLkdIwHu7ix","note":"a hundred bytes of json, really"}'
local threads = 0

function setup(thread)
  thread:set("id", threads)
  threads = threads + 1
end

function init(args)
  local mode, nonce, keys = args[1], args[2], tonumber(args[3])
  wrk.headers["X-Api-Key"] = "sk_test_4eC39HqLyjWDarjtT1zdp7dc"
  if mode == "get" then return end
  wrk.method, wrk.body = "POST", body
  wrk.headers["Content-Type"] = "application/json"
  if mode == "post" then return end

  -- Formatted once and cut at the key: a fresh key costs the load generator little.
  local head, tail = string.match(
    wrk.format(nil, nil, { ["Idempotency-Key"] = "@", ["X-Api-Key"] = wrk.headers["X-Api-Key"],
      ["Content-Type"] = "application/json", ["Host"] = wrk.headers["Host"] }),
    "^(.-)@(.*)$")
  local count = 0
  if mode == "fresh" then
    function request()
      count = count + 1
      return head .. nonce .. "-" .. id .. "-" .. count .. tail
    end
  elseif keys == 1 then
    wrk.headers["Idempotency-Key"] = nonce .. "-0"
  else
    local requests = {}
    for key = 0, keys - 1 do requests[key] = head .. nonce .. "-" .. key .. tail end
    function request()
      count = count + 1
      return requests[count % keys]
    end
  end
end

function done(summary, latency)
  local e = summary.errors
  io.write(string.format("figures %d %d %d %d %d\n", summary.requests, summary.duration,
    e.connect + e.read + e.write + e.status + e.timeout,
    latency:percentile(50), latency:percentile(99)))
end
