// @ts-self-types="./redis_worker.d.ts"
import { serve } from "../../workers/serve.ts";

serve(() => import("./transport.ts"));
