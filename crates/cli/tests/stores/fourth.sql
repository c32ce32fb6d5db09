-- A stopped campaign of pairs on a model, as the version wrote it that measured all programs alone
-- first (format 5).
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE campaign (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    started    INTEGER NOT NULL DEFAULT (unixepoch()), -- seconds since the Unix epoch
    kind       TEXT NOT NULL,                          -- the question: place, threads, ...
                                                       -- (Kind::name)
    parent     INTEGER,                                -- the campaign that this one is a part of
    step       TEXT,                                   -- JSON: which of its steps,
                                                       -- {"place":{"n":4,"round":1}}
    command    TEXT NOT NULL,                          -- JSON array: the command line that asked
    machine    TEXT NOT NULL,                          -- JSON
    alike      TEXT NOT NULL,                          -- which domains count as interchangeable
    workload   TEXT NOT NULL,                          -- JSON: the threads, in the order
                                                       -- assignments number them
    unit       TEXT NOT NULL,                          -- JSON: what performance is counted in
    simulated  INTEGER NOT NULL,                       -- 1: what is measured is a model's, else 0
    question   TEXT NOT NULL,                          -- JSON
    seed       TEXT NOT NULL,                          -- decimal, 64 bits
    state      TEXT NOT NULL DEFAULT 'open',           -- open, finished, stopped
    conclusion TEXT                                    -- JSON, once there is one
) STRICT;
INSERT INTO campaign VALUES(1,1795899194,'pairs',NULL,NULL,'["pinwise","pairs","--machine","pentium4-northwood","--workload","164.gzip","--workload","171.swim","--workload","181.mcf","--seed","1","--cycles","200000","--store","v.db"]','{"name":"pentium4-northwood","root":{"kind":"machine","os_index":null,"cpus":"0,1","children":[{"kind":"core","os_index":0,"cpus":"0,1","children":[{"kind":"pu","os_index":0,"cpus":"0","children":[]},{"kind":"pu","os_index":1,"cpus":"1","children":[]}]}]},"contexts":[{"cpu":0,"kind":0},{"cpu":1,"kind":0}],"kinds":[{"name":"core","cpus":"0,1","capacity":null}],"caches":[],"numa":[{"os_index":0,"cpus":"0,1","memory":null,"allowed":true}],"distances":null,"offline":"","allowed":"0,1","notes":[]}','by-structure','{"name":"164.gzip, 171.swim, 181.mcf","threads":[{"name":"164.gzip0","role":"164.gzip","instance":0},{"name":"171.swim1","role":"171.swim","instance":1},{"name":"181.mcf2","role":"181.mcf","instance":2}]}','{"name":"micro-operations/s","reciprocal":false}',1,'{"budget":{"measurements":1000},"confidence":0.95,"lengths":"equal","programs":{"smt_core":{"core":"pentium4-northwood","cycles":200000,"programs":["164.gzip","171.swim","181.mcf"],"starts":2}},"seed":1}','1','stopped',NULL);
CREATE TABLE record (
    campaign    INTEGER NOT NULL REFERENCES campaign (id),
    number      INTEGER NOT NULL,                      -- position in the campaign, from 0
    purpose     TEXT NOT NULL,                         -- baseline, sample, steered, climb,
                                                       -- reference, profile, final, other
    assignment  TEXT NOT NULL,                         -- leaf of every thread, as 0,3,1; or
                                                       -- unpinned; a profile has
                                                       -- INSTANCE:LEAVES of each part, as
                                                       -- 0:0,8,16 0:24,9,40;
                                                       -- threads: n=4, n=4 0,1,2,3 or n=default;
                                                       -- contexts 0>1; benchmarks LEAF=BENCHMARK:
                                                       -- seats 0=3 8=1 seed 7
    windows     REAL NOT NULL,                         -- length, in the testbed's ordinary windows
    performance REAL,                                  -- in the campaign's unit, higher is better;
                                                       -- NULL when it failed
    duration_s  REAL,                                  -- time measured over, without settling
    spread      REAL,                                  -- standard deviation within the window,
                                                       -- where known
    error       TEXT,                                  -- what failed
    retry       TEXT,                                  -- whether another try makes sense: same,
                                                       -- other, below_floor, expired
    detail      TEXT,                                  -- JSON: what else was observed
    elapsed_s   REAL NOT NULL,                         -- time spent measuring since the campaign
                                                       -- began
    at          REAL NOT NULL DEFAULT (unixepoch('subsec')),
    PRIMARY KEY (campaign, number)
) STRICT, WITHOUT ROWID;
INSERT INTO record VALUES(1,0,'profile','1:0',1.0,1047233981.3786963224,0.00023715399999999999978,NULL,NULL,NULL,'{"counts":[{"counted":1.0,"counts":{"branch_misses":28.0,"branches":3341.0,"cycles":399972.0,"fp_operations":56238.0,"front_end_misses":0.0,"instructions":165559.0,"l1_data_misses":4139.0,"l2_misses":4109.0},"seconds":0.0001580916996047431}],"seconds":[[0.0009501274999322949,0.0009597129124473469]]}',0.00023715399999999999978,1795899194.7960000037);
INSERT INTO record VALUES(1,1,'profile','0:0',1.0,1050107394.3309793472,0.00023715399999999999978,NULL,NULL,NULL,'{"counts":[{"counted":1.0,"counts":{"branch_misses":1701.0,"branches":28160.0,"cycles":399928.0,"fp_operations":0.0,"front_end_misses":370.0,"instructions":165995.0,"l1_data_misses":9998.0,"l2_misses":1826.0},"seconds":0.0001580743083003953}],"seconds":[[0.000968701165697806,0.0009363947298827839]]}',0.00047430799999999999957,1795899194.9019999503);
INSERT INTO record VALUES(1,2,'profile','2:0',1.0,169938870.67523193359,0.00023715399999999999978,NULL,NULL,NULL,'{"counts":[{"counted":1.0,"counts":{"branch_misses":381.0,"branches":5426.0,"cycles":398663.0,"fp_operations":0.0,"front_end_misses":154.0,"instructions":26778.0,"l1_data_misses":3964.0,"l2_misses":2739.0},"seconds":0.00015757430830039528}],"seconds":[[0.005691762516421379,0.0060900560974389475]]}',0.00071146200000000005356,1795899194.9219999312);
INSERT INTO record VALUES(1,3,'profile','1:0 2:1',1.0,525962038.27117216588,0.00023715399999999999978,NULL,NULL,NULL,'{"counts":[{"counted":1.0,"counts":{"branch_misses":15.0,"branches":1259.0,"cycles":400292.0,"fp_operations":21249.0,"front_end_misses":0.0,"instructions":62874.0,"l1_data_misses":3676.0,"l2_misses":1553.0},"seconds":0.00015821818181818186},{"counted":1.0,"counts":{"branch_misses":282.0,"branches":4095.0,"cycles":400100.0,"fp_operations":0.0,"front_end_misses":171.0,"instructions":20333.0,"l1_data_misses":4705.0,"l2_misses":2180.0},"seconds":0.0001581422924901186}],"seconds":[[0.00253092640095296,0.002501988459466994],[0.00783079977086783,0.00772532188841202]]}',0.00094861599999999999914,1795899194.986000061);
INSERT INTO record VALUES(1,4,'profile','0:0 2:1',1.0,344929394.51615524291,0.00023715399999999999978,NULL,NULL,NULL,'{"counts":[{"counted":1.0,"counts":{"branch_misses":314.0,"branches":5558.0,"cycles":399279.0,"fp_operations":0.0,"front_end_misses":244.0,"instructions":32316.0,"l1_data_misses":4389.0,"l2_misses":969.0},"seconds":0.00015781778656126486},{"counted":1.0,"counts":{"branch_misses":281.0,"branches":4384.0,"cycles":400308.0,"fp_operations":0.0,"front_end_misses":124.0,"instructions":22177.0,"l1_data_misses":4906.0,"l2_misses":2312.0},"seconds":0.0001582245059288538}],"seconds":[[0.00508612562002893,0.004695934921036976],[0.0075523837873073185,0.006759647471549587]]}',0.0011857700000000000531,1795899195.0190000534);
INSERT INTO record VALUES(1,5,'profile','0:0 1:1',1.0,1354516458.9536876678,0.00023715399999999999978,NULL,NULL,NULL,'{"counts":[{"counted":1.0,"counts":{"branch_misses":819.0,"branches":14001.0,"cycles":400348.0,"fp_operations":0.0,"front_end_misses":353.0,"instructions":82159.0,"l1_data_misses":10803.0,"l2_misses":1452.0},"seconds":0.00015824031620553363},{"counted":1.0,"counts":{"branch_misses":29.0,"branches":2696.0,"cycles":399963.0,"fp_operations":44952.0,"front_end_misses":114.0,"instructions":132053.0,"l1_data_misses":8559.0,"l2_misses":3317.0},"seconds":0.00015808814229249015}],"seconds":[[0.002052118582198326,0.0018144236852338752],[0.0011286049114203186,0.0012745843657953238]]}',0.0014229240000000001071,1795899195.1730000972);
CREATE TABLE token (
    value TEXT NOT NULL                                -- random
) STRICT;
INSERT INTO token VALUES('f1634dd026547c98');
CREATE TABLE digest (
    campaign INTEGER NOT NULL, -- 0: rows of machine, by their id
    record   INTEGER NOT NULL, -- number of a record; -1: the row of the campaign itself;
                               -- -2 and below: its sessions 0, 1, ... in part
    digest   INTEGER NOT NULL, -- FNV-1a of its columns
    PRIMARY KEY (campaign, record)
) STRICT, WITHOUT ROWID;
INSERT INTO digest VALUES(1,-1,1721296518975131264);
INSERT INTO digest VALUES(1,0,7509859017095987388);
INSERT INTO digest VALUES(1,1,1451052336070440976);
INSERT INTO digest VALUES(1,2,-7966995458489257223);
INSERT INTO digest VALUES(1,3,134774142002297078);
INSERT INTO digest VALUES(1,4,-3006519163741284707);
INSERT INTO digest VALUES(1,5,8876868272217961851);
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('campaign',1);
PRAGMA application_id = 1885957751;
PRAGMA user_version = 5;
COMMIT;
