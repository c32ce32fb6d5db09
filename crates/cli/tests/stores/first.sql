-- Two campaigns in the form in which the first version of pinwise wrote them: a built-in workload in other words than today's, questions and an
-- answer without what was added since. They were made by a later version on a recorded machine, and what it added was taken away.
-- The store of pinwise. Every measurement is one row of `record`; ask it with the sqlite3 shell:
--   SELECT assignment, count(*), avg(performance) FROM record WHERE campaign = 1 GROUP BY assignment ORDER BY 3 DESC;
CREATE TABLE campaign (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    started    INTEGER NOT NULL DEFAULT (unixepoch()), -- seconds since the Unix epoch
    command    TEXT NOT NULL,                          -- JSON array: the command line that asked
    machine    TEXT NOT NULL,                          -- JSON
    alike      TEXT NOT NULL,                          -- which domains count as interchangeable
    workload   TEXT NOT NULL,                          -- JSON: the threads, in the order assignments number them
    unit       TEXT NOT NULL,                          -- JSON: what performance is counted in
    question   TEXT NOT NULL,                          -- JSON
    seed       TEXT NOT NULL,                          -- decimal, 64 bits
    state      TEXT NOT NULL DEFAULT 'open',           -- open, finished, stopped
    conclusion TEXT                                    -- JSON, once there is one
) STRICT;

CREATE TABLE record (
    campaign    INTEGER NOT NULL REFERENCES campaign (id),
    number      INTEGER NOT NULL,                      -- position in the campaign, from 0
    purpose     TEXT NOT NULL,                         -- baseline, sample, climb, reference, final
    assignment  TEXT NOT NULL,                         -- leaf of every thread, as 0,3,1; or unpinned
    windows     REAL NOT NULL,                         -- length, in the testbed's ordinary windows
    performance REAL,                                  -- in the campaign's unit, higher is better; NULL when it failed
    duration_s  REAL,                                  -- time measured over, without settling
    spread      REAL,                                  -- standard deviation within the window, where known
    error       TEXT,                                  -- what failed
    retry       TEXT,                                  -- whether another try makes sense: same, other
    elapsed_s   REAL NOT NULL,                         -- time spent measuring since the campaign began
    at          REAL NOT NULL DEFAULT (unixepoch('subsec')),
    PRIMARY KEY (campaign, number)
) STRICT, WITHOUT ROWID;
PRAGMA application_id = 0x70696e77;
PRAGMA user_version = 1;
INSERT INTO campaign (id, started, command, machine, alike, workload, unit, question, seed, state, conclusion) VALUES
(1,
 1790000000,
 '["pinwise","place","--workload","hash1_L1:1"]',
 '{"name":"Intel Xeon Processor (Skylake)","root":{"kind":"machine","os_index":null,"cpus":"0-7","children":[{"kind":"numa","os_index":0,"cpus":"0-7","children":[{"kind":"package","os_index":0,"cpus":"0-3","children":[{"kind":"l3","os_index":0,"cpus":"0-3","children":[{"kind":"l2","os_index":0,"cpus":"0,1","children":[{"kind":"core","os_index":0,"cpus":"0,1","children":[{"kind":"pu","os_index":0,"cpus":"0","children":[]},{"kind":"pu","os_index":1,"cpus":"1","children":[]}]}]},{"kind":"l2","os_index":1,"cpus":"2,3","children":[{"kind":"core","os_index":1,"cpus":"2,3","children":[{"kind":"pu","os_index":2,"cpus":"2","children":[]},{"kind":"pu","os_index":3,"cpus":"3","children":[]}]}]}]}]},{"kind":"package","os_index":1,"cpus":"4-7","children":[{"kind":"l3","os_index":1,"cpus":"4-7","children":[{"kind":"l2","os_index":2,"cpus":"4,5","children":[{"kind":"core","os_index":0,"cpus":"4,5","children":[{"kind":"pu","os_index":4,"cpus":"4","children":[]},{"kind":"pu","os_index":5,"cpus":"5","children":[]}]}]},{"kind":"l2","os_index":3,"cpus":"6,7","children":[{"kind":"core","os_index":1,"cpus":"6,7","children":[{"kind":"pu","os_index":6,"cpus":"6","children":[]},{"kind":"pu","os_index":7,"cpus":"7","children":[]}]}]}]}]}]}]},"contexts":[{"cpu":0,"kind":0},{"cpu":1,"kind":0},{"cpu":2,"kind":0},{"cpu":3,"kind":0},{"cpu":4,"kind":0},{"cpu":5,"kind":0},{"cpu":6,"kind":0},{"cpu":7,"kind":0}],"kinds":[{"name":"core","cpus":"0-7","capacity":null}],"caches":[{"level":3,"kind":"unified","size":16777216,"line":64,"ways":16,"cpus":"0-3"},{"level":3,"kind":"unified","size":16777216,"line":64,"ways":16,"cpus":"4-7"}],"numa":[{"os_index":0,"cpus":"0-7","memory":1013207040,"allowed":true}],"distances":[[10]],"offline":"","allowed":"0-7","notes":[]}',
 'by-structure',
 '{"name":"ipfwd","threads":[{"name":"ipfwd0-R","role":"R","instance":0},{"name":"ipfwd0-P","role":"P","instance":0},{"name":"ipfwd0-T","role":"T","instance":0}]}',
 '{"name":"packets/s","reciprocal":false}',
 '{"strategy":"auto","within":0.025,"confidence":0.95,"budget":{"measurements":200},"per_context":1,"alike":"by-structure","start":500,"step":null,"method":"bayes","cap":null,"precision":0.01,"seed":1,"subject":{"launched":["/usr/local/bin/pinwise","workload","hash1_L1","--instances","1","--interval","10ms"]},"metric":"stdout:packets=(?<value>\\d+) seconds=(?<seconds>[\\d.]+)","reading":{"pick":null,"counter":true,"lower_is_better":false,"unit":"packets/s"},"cpus":null,"period":{"secs":0,"nanos":50000000},"floor":null,"limit":{"secs":60,"nanos":0}}',
 '1',
 'finished',
 '{"advice":"pin","unit":{"name":"packets/s","reciprocal":false},"best":{"assignment":[0,4,6],"performance":{"confidence":0.95,"high":2355023.184733245,"low":2308610.351160493,"mean":2331816.767946869,"n":6,"spread":22113.234870388074}},"baseline":{"confidence":0.95,"high":1707751.1079350743,"low":1689877.5940079,"mean":1698814.3509714871,"n":12,"spread":14065.444326015591},"gain":[0.3726142392271363,0.359736382348659,0.38549209610561364],"ties":[],"bound":{"confidence":0.95,"gap":0.0,"gap_high":0.014973294946919596,"method":"exact","n":9,"notes":["every assignment was measured: the bound rests on noise alone"],"upb":2331816.767946869,"upb_high":2367262.4873872977,"upb_low":2331816.767946869},"assignments":"9","drift":{"change":-0.0013542062616526823,"n":8,"significant":false},"cost":{"classes":9,"failed":0,"measurements":63,"time":{"nanos":300000000,"secs":6}},"strategy":"exhaustive: the 9 assignments fit the budget 3 times over","stopped_because":"1 assignment of 9 could still be the best after 3 rounds; 6 fresh windows each are precise to 1.0 %"}');
INSERT INTO record (campaign, number, purpose, assignment, windows, performance, duration_s, spread, error, retry, elapsed_s, at) VALUES
(1, 0, 'baseline', 'unpinned', 1.0, 1691308.4839567707, 0.1, NULL, NULL, NULL, 0.1, 1790000000.1),
(1, 1, 'baseline', 'unpinned', 1.0, 1691533.6382308193, 0.1, NULL, NULL, NULL, 0.2, 1790000000.2),
(1, 2, 'baseline', 'unpinned', 1.0, 1682387.4555181817, 0.1, NULL, NULL, NULL, 0.3, 1790000000.3),
(1, 3, 'baseline', 'unpinned', 1.0, 1718850.099036907, 0.1, NULL, NULL, NULL, 0.4, 1790000000.4),
(1, 4, 'reference', '0,1,2', 1.0, 1364473.9685409535, 0.1, NULL, NULL, NULL, 0.5, 1790000000.5),
(1, 5, 'reference', '0,1,2', 1.0, 1361357.0615750013, 0.1, NULL, NULL, NULL, 0.6, 1790000000.6),
(1, 6, 'sample', '0,4,2', 1.0, 1754267.7861293002, 0.1, NULL, NULL, NULL, 0.7, 1790000000.7),
(1, 7, 'reference', '0,1,2', 1.0, 1349177.2831442447, 0.1, NULL, NULL, NULL, 0.8, 1790000000.8),
(1, 8, 'sample', '0,2,4', 1.0, 1334661.706094835, 0.1, NULL, NULL, NULL, 0.9, 1790000000.9),
(1, 9, 'sample', '0,2,1', 1.0, 1281340.3499314464, 0.1, NULL, NULL, NULL, 1.0, 1790000001.0),
(1, 10, 'sample', '0,4,1', 1.0, 1640681.269652819, 0.1, NULL, NULL, NULL, 1.1, 1790000001.1),
(1, 11, 'baseline', 'unpinned', 1.0, 1663538.5514824365, 0.1, NULL, NULL, NULL, 1.2, 1790000001.2),
(1, 12, 'sample', '0,2,3', 1.0, 1718070.344725708, 0.1, NULL, NULL, NULL, 1.3, 1790000001.3),
(1, 13, 'sample', '0,4,5', 1.0, 1186967.1454851169, 0.1, NULL, NULL, NULL, 1.4, 1790000001.4),
(1, 14, 'sample', '0,4,6', 1.0, 2355667.0650271676, 0.1, NULL, NULL, NULL, 1.5, 1790000001.5),
(1, 15, 'sample', '0,1,4', 1.0, 2171956.6117720944, 0.1, NULL, NULL, NULL, 1.6, 1790000001.6),
(1, 16, 'sample', '0,1,2', 1.0, 1357000.051848291, 0.1, NULL, NULL, NULL, 1.7, 1790000001.7),
(1, 17, 'baseline', 'unpinned', 1.0, 1688965.4280533849, 0.1, NULL, NULL, NULL, 1.8, 1790000001.8),
(1, 18, 'sample', '0,4,6', 1.0, 2326695.161188585, 0.1, NULL, NULL, NULL, 1.9, 1790000001.9),
(1, 19, 'sample', '0,4,1', 1.0, 1666507.0043252057, 0.1, NULL, NULL, NULL, 2.0, 1790000002.0),
(1, 20, 'reference', '0,1,2', 1.0, 1344991.388547786, 0.1, NULL, NULL, NULL, 2.1, 1790000002.1),
(1, 21, 'sample', '0,2,1', 1.0, 1259801.8145308937, 0.1, NULL, NULL, NULL, 2.2, 1790000002.2),
(1, 22, 'baseline', 'unpinned', 1.0, 1691171.674361734, 0.1, NULL, NULL, NULL, 2.3, 1790000002.3),
(1, 23, 'sample', '0,4,2', 1.0, 1728742.1459669154, 0.1, NULL, NULL, NULL, 2.4, 1790000002.4),
(1, 24, 'sample', '0,2,4', 1.0, 1349810.0678656527, 0.1, NULL, NULL, NULL, 2.5, 1790000002.5),
(1, 25, 'sample', '0,1,4', 1.0, 2213252.0469880756, 0.1, NULL, NULL, NULL, 2.6, 1790000002.6),
(1, 26, 'sample', '0,2,3', 1.0, 1721780.6919906286, 0.1, NULL, NULL, NULL, 2.7, 1790000002.7),
(1, 27, 'sample', '0,1,2', 1.0, 1340746.898328514, 0.1, NULL, NULL, NULL, 2.8, 1790000002.8),
(1, 28, 'sample', '0,4,5', 1.0, 1194082.1195994236, 0.1, NULL, NULL, NULL, 2.9, 1790000002.9),
(1, 29, 'baseline', 'unpinned', 1.0, 1700182.278416793, 0.1, NULL, NULL, NULL, 3.0, 1790000003.0),
(1, 30, 'sample', '0,2,3', 1.0, 1720267.1316732077, 0.1, NULL, NULL, NULL, 3.1, 1790000003.1),
(1, 31, 'baseline', 'unpinned', 1.0, 1718468.3514089196, 0.1, NULL, NULL, NULL, 3.2, 1790000003.2),
(1, 32, 'reference', '0,1,2', 1.0, 1365037.366043831, 0.1, NULL, NULL, NULL, 3.3, 1790000003.3),
(1, 33, 'sample', '0,2,1', 1.0, 1258823.110294266, 0.1, NULL, NULL, NULL, 3.4, 1790000003.4),
(1, 34, 'sample', '0,2,4', 1.0, 1354129.2884481798, 0.1, NULL, NULL, NULL, 3.5, 1790000003.5),
(1, 35, 'sample', '0,1,4', 1.0, 2190507.61693212, 0.1, NULL, NULL, NULL, 3.6, 1790000003.6),
(1, 36, 'sample', '0,4,1', 1.0, 1651245.8512384917, 0.1, NULL, NULL, NULL, 3.7, 1790000003.7),
(1, 37, 'sample', '0,4,5', 1.0, 1178397.460347251, 0.1, NULL, NULL, NULL, 3.8, 1790000003.8),
(1, 38, 'baseline', 'unpinned', 1.0, 1699630.9417769555, 0.1, NULL, NULL, NULL, 3.9, 1790000003.9),
(1, 39, 'sample', '0,4,6', 1.0, 2382223.9509299044, 0.1, NULL, NULL, NULL, 4.0, 1790000004.0),
(1, 40, 'sample', '0,4,2', 1.0, 1774168.9555598178, 0.1, NULL, NULL, NULL, 4.1, 1790000004.1),
(1, 41, 'sample', '0,1,2', 1.0, 1348587.6913689822, 0.1, NULL, NULL, NULL, 4.2, 1790000004.2),
(1, 42, 'final', 'unpinned', 1.0, 1677917.9786590042, 0.1, NULL, NULL, NULL, 4.3, 1790000004.3),
(1, 43, 'final', 'unpinned', 1.0, 1711168.0050997438, 0.1, NULL, NULL, NULL, 4.4, 1790000004.4),
(1, 44, 'final', '0,4,6', 1.0, 2349434.194450237, 0.1, NULL, NULL, NULL, 4.5, 1790000004.5),
(1, 45, 'final', 'unpinned', 1.0, 1691339.73944691, 0.1, NULL, NULL, NULL, 4.6, 1790000004.6),
(1, 46, 'reference', '0,1,2', 1.0, 1381790.9131828677, 0.1, NULL, NULL, NULL, 4.7, 1790000004.7),
(1, 47, 'final', '0,4,6', 1.0, 2358292.3216136787, 0.1, NULL, NULL, NULL, 4.8, 1790000004.8),
(1, 48, 'final', 'unpinned', 1.0, 1703595.7084526957, 0.1, NULL, NULL, NULL, 4.9, 1790000004.9),
(1, 49, 'final', 'unpinned', 1.0, 1691206.3198230201, 0.1, NULL, NULL, NULL, 5.0, 1790000005.0),
(1, 50, 'final', 'unpinned', 1.0, 1707360.483186793, 0.1, NULL, NULL, NULL, 5.1, 1790000005.1),
(1, 51, 'final', '0,4,6', 1.0, 2317034.54212356, 0.1, NULL, NULL, NULL, 5.2, 1790000005.2),
(1, 52, 'final', 'unpinned', 1.0, 1713830.681644312, 0.1, NULL, NULL, NULL, 5.3, 1790000005.3),
(1, 53, 'reference', '0,1,2', 1.0, 1360508.828249353, 0.1, NULL, NULL, NULL, 5.4, 1790000005.4),
(1, 54, 'final', '0,4,6', 1.0, 2340204.203426302, 0.1, NULL, NULL, NULL, 5.5, 1790000005.5),
(1, 55, 'final', 'unpinned', 1.0, 1702451.0342554427, 0.1, NULL, NULL, NULL, 5.6, 1790000005.6),
(1, 56, 'final', '0,4,6', 1.0, 2298233.2390219183, 0.1, NULL, NULL, NULL, 5.7, 1790000005.7),
(1, 57, 'final', 'unpinned', 1.0, 1681626.5901515342, 0.1, NULL, NULL, NULL, 5.8, 1790000005.8),
(1, 58, 'final', 'unpinned', 1.0, 1682996.2458123239, 0.1, NULL, NULL, NULL, 5.9, 1790000005.9),
(1, 59, 'reference', '0,1,2', 1.0, 1361630.8644174112, 0.1, NULL, NULL, NULL, 6.0, 1790000006.0),
(1, 60, 'final', '0,4,6', 1.0, 2327702.1070455206, 0.1, NULL, NULL, NULL, 6.1, 1790000006.1),
(1, 61, 'final', 'unpinned', 1.0, 1699116.6762059827, 0.1, NULL, NULL, NULL, 6.2, 1790000006.2),
(1, 62, 'final', 'unpinned', 1.0, 1723162.7489200814, 0.1, NULL, NULL, NULL, 6.3, 1790000006.3);
INSERT INTO campaign (id, started, command, machine, alike, workload, unit, question, seed, state, conclusion) VALUES
(2,
 1790000000,
 '["pinwise","place","--workload","hash1_L1:2"]',
 '{"name":"Intel Xeon Processor (Skylake)","root":{"kind":"machine","os_index":null,"cpus":"0-7","children":[{"kind":"package","os_index":0,"cpus":"0-3","children":[{"kind":"numa","os_index":0,"cpus":"0-3","children":[{"kind":"l3","os_index":0,"cpus":"0-3","children":[{"kind":"l2","os_index":0,"cpus":"0","children":[{"kind":"core","os_index":0,"cpus":"0","children":[{"kind":"pu","os_index":0,"cpus":"0","children":[]}]}]},{"kind":"l2","os_index":1,"cpus":"1","children":[{"kind":"core","os_index":1,"cpus":"1","children":[{"kind":"pu","os_index":1,"cpus":"1","children":[]}]}]},{"kind":"l2","os_index":2,"cpus":"2","children":[{"kind":"core","os_index":2,"cpus":"2","children":[{"kind":"pu","os_index":2,"cpus":"2","children":[]}]}]},{"kind":"l2","os_index":3,"cpus":"3","children":[{"kind":"core","os_index":3,"cpus":"3","children":[{"kind":"pu","os_index":3,"cpus":"3","children":[]}]}]}]}]}]},{"kind":"package","os_index":1,"cpus":"4-7","children":[{"kind":"numa","os_index":1,"cpus":"4-7","children":[{"kind":"l3","os_index":1,"cpus":"4-7","children":[{"kind":"l2","os_index":4,"cpus":"4","children":[{"kind":"core","os_index":0,"cpus":"4","children":[{"kind":"pu","os_index":4,"cpus":"4","children":[]}]}]},{"kind":"l2","os_index":5,"cpus":"5","children":[{"kind":"core","os_index":1,"cpus":"5","children":[{"kind":"pu","os_index":5,"cpus":"5","children":[]}]}]},{"kind":"l2","os_index":6,"cpus":"6","children":[{"kind":"core","os_index":2,"cpus":"6","children":[{"kind":"pu","os_index":6,"cpus":"6","children":[]}]}]},{"kind":"l2","os_index":7,"cpus":"7","children":[{"kind":"core","os_index":3,"cpus":"7","children":[{"kind":"pu","os_index":7,"cpus":"7","children":[]}]}]}]}]}]}]},"contexts":[{"cpu":0,"kind":0},{"cpu":1,"kind":0},{"cpu":2,"kind":0},{"cpu":3,"kind":0},{"cpu":4,"kind":0},{"cpu":5,"kind":0},{"cpu":6,"kind":0},{"cpu":7,"kind":0}],"kinds":[{"name":"core","cpus":"0-7","capacity":null}],"caches":[{"level":3,"kind":"unified","size":16777216,"line":64,"ways":16,"cpus":"0-3"},{"level":3,"kind":"unified","size":16777216,"line":64,"ways":16,"cpus":"4-7"}],"numa":[{"os_index":0,"cpus":"0-3","memory":526163968,"allowed":true},{"os_index":1,"cpus":"4-7","memory":527224832,"allowed":true},{"os_index":2,"cpus":"","memory":489521152,"allowed":true}],"distances":[[10,21,28],[21,10,17],[28,17,10]],"offline":"","allowed":"0-7","notes":[]}',
 'by-structure',
 '{"name":"ipfwd","threads":[{"name":"ipfwd0-R","role":"R","instance":0},{"name":"ipfwd0-P","role":"P","instance":0},{"name":"ipfwd0-T","role":"T","instance":0},{"name":"ipfwd1-R","role":"R","instance":1},{"name":"ipfwd1-P","role":"P","instance":1},{"name":"ipfwd1-T","role":"T","instance":1}]}',
 '{"name":"packets/s","reciprocal":false}',
 '{"strategy":"random","within":0.025,"confidence":0.95,"budget":{"measurements":600},"per_context":1,"alike":"by-structure","start":500,"step":null,"method":"bayes","cap":null,"precision":0.01,"seed":1,"subject":{"launched":["/usr/local/bin/pinwise","workload","hash1_L1","--instances","2","--interval","10ms"]},"metric":"stdout:packets=(?<value>\\d+) seconds=(?<seconds>[\\d.]+)","reading":{"pick":null,"counter":true,"lower_is_better":false,"unit":"packets/s"},"cpus":null,"period":{"secs":0,"nanos":50000000},"floor":null,"limit":{"secs":60,"nanos":0}}',
 '1',
 'stopped',
 NULL);
INSERT INTO record (campaign, number, purpose, assignment, windows, performance, duration_s, spread, error, retry, elapsed_s, at) VALUES
(2, 0, 'baseline', 'unpinned', 1.0, 2885173.29616155, 0.1, NULL, NULL, NULL, 0.1, 1790000000.1),
(2, 1, 'baseline', 'unpinned', 1.0, 2885557.382864339, 0.1, NULL, NULL, NULL, 0.2, 1790000000.2),
(2, 2, 'baseline', 'unpinned', 1.0, 2869955.0711780745, 0.1, NULL, NULL, NULL, 0.3, 1790000000.3),
(2, 3, 'baseline', 'unpinned', 1.0, 2932156.0512982532, 0.1, NULL, NULL, NULL, 0.4, 1790000000.4),
(2, 4, 'reference', '0,1,2,3,4,5', 1.0, 1762445.5426987314, 0.1, NULL, NULL, NULL, 0.5, 1790000000.5),
(2, 5, 'reference', '0,1,2,3,4,5', 1.0, 1758419.53786771, 0.1, NULL, NULL, NULL, 0.6, 1790000000.6),
(2, 6, 'sample', '0,4,5,6,1,2', 1.0, 3133999.552181761, 0.1, NULL, NULL, NULL, 0.7, 1790000000.7),
(2, 7, 'sample', '4,0,5,1,6,2', 1.0, 1953942.6420215357, 0.1, NULL, NULL, NULL, 0.8, 1790000000.8),
(2, 8, 'baseline', 'unpinned', 1.0, 2906413.008791926, 0.1, NULL, NULL, NULL, 0.9, 1790000000.9),
(2, 9, 'sample', '4,0,1,2,5,3', 1.0, 3092499.68982388, 0.1, NULL, NULL, NULL, 1.0, 1790000001.0),
(2, 10, 'sample', '4,5,6,7,0,1', 1.0, 1943259.2802907773, 0.1, NULL, NULL, NULL, 1.1, 1790000001.1),
(2, 11, 'sample', '0,4,1,2,5,6', 1.0, 1678352.5938200857, 0.1, NULL, NULL, NULL, 1.2, 1790000001.2),
(2, 12, 'baseline', 'unpinned', 1.0, 2868564.2396031083, 0.1, NULL, NULL, NULL, 1.3, 1790000001.3),
(2, 13, 'sample', '0,4,1,2,5,6', 1.0, 1631046.1633256297, 0.1, NULL, NULL, NULL, 1.4, 1790000001.4),
(2, 14, 'sample', '0,1,4,2,5,6', 1.0, 2257801.4000085355, 0.1, NULL, NULL, NULL, 1.5, 1790000001.5),
(2, 15, 'sample', '4,0,1,5,2,6', 1.0, 1758903.9153370399, 0.1, NULL, NULL, NULL, 1.6, 1790000001.6),
(2, 16, 'sample', '4,0,5,1,6,7', 1.0, 2936423.2170472164, 0.1, NULL, NULL, NULL, 1.7, 1790000001.7),
(2, 17, 'sample', '4,0,1,2,5,6', 1.0, 3016383.4609135254, 0.1, NULL, NULL, NULL, 1.8, 1790000001.8),
(2, 18, 'sample', '4,0,1,5,2,3', 1.0, 2660173.8366928184, 0.1, NULL, NULL, NULL, 1.9, 1790000001.9),
(2, 19, 'sample', '4,0,5,1,6,2', 1.0, 1971825.6512827808, 0.1, NULL, NULL, NULL, 2.0, 1790000002.0);
