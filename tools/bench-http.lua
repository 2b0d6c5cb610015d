-- wrk's part of tools/bench-http. From the environment:
--   BENCH_PATH     what is asked for
--   BENCH_IDS      conversations, separated by commas; BENCH_SPREAD=threads gives each thread one of them, else each asks for all in turn
--   BENCH_TARGETS  addresses HOST:PORT, separated by commas: thread after thread goes to another one (without: all to wrk's URL)
--   BENCH_CLOSE    a connection for each request
local function words(name)
   local list = {}
   for word in string.gmatch(os.getenv(name) or "", "[^,]+") do list[#list + 1] = word end
   return list
end

local threads = 0

function setup(thread)
   local targets = words("BENCH_TARGETS")
   if #targets > 0 then
      local host, port = string.match(targets[threads % #targets + 1], "^(.*):(%d+)$")
      thread.addr = wrk.lookup(host, port)[1]
   end
   thread:set("number", threads)
   threads = threads + 1
end

local requests, at = {}, 0

function init()
   local ids = words("BENCH_IDS")
   if os.getenv("BENCH_SPREAD") == "threads" then ids = {ids[number % #ids + 1]} end
   for index, id in ipairs(ids) do
      local headers = {["x-conversation-id"] = id}
      if os.getenv("BENCH_CLOSE") then headers["Connection"] = "close" end
      requests[index] = wrk.format("GET", os.getenv("BENCH_PATH") or "/", headers)
   end
end

function request()
   at = at % #requests + 1
   return requests[at]
end

-- wrk counts in whole microseconds, of which a router adds a few: within the one that the middle lies in, by how many lie below it
local function median(latency)
   local all, below = 0, 0
   for index = 1, #latency do
      local _, count = latency(index)
      all = all + count
   end
   for index = 1, #latency do
      local value, count = latency(index)
      if (below + count) * 2 >= all then return value + (all / 2 - below) / count end
      below = below + count
   end
   return 0
end

function done(summary, latency)
   local errors = summary.errors
   io.write(string.format(
      'bench {"requests":%d,"seconds":%.6f,"bytes":%d,"p50":%.2f,"p99":%d,"failed":%d}\n',
      summary.requests, summary.duration / 1e6, summary.bytes, median(latency), latency:percentile(99),
      errors.connect + errors.read + errors.write + errors.timeout + errors.status))
end
